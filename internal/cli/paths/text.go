package paths

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

func certaintyText(c attackpaths.Certainty, target string) string {
	return map[attackpaths.Certainty]string{
		attackpaths.No: "does not reach ", attackpaths.Possible: "possibly reaches ", attackpaths.Certain: "reaches ",
	}[c] + target
}

// StyleOf is the style in which a certainty is shown.
func StyleOf(c attackpaths.Certainty) render.Style {
	return map[attackpaths.Certainty]render.Style{
		attackpaths.No: render.Good, attackpaths.Possible: render.Unsure, attackpaths.Certain: render.Bad,
	}[c]
}

// Text writes the total, then the paths, paths to cluster-admin first.
func (r AttackPathsResult) Text(p *render.Page) {
	p.Line("%s %s", r.Start, StyleOf(r.certainty()).In(r.outcome()))
	if totals := CountTexts(CountHoldings(r.Reached)); totals != "" && r.Target == nil {
		p.Line("  %s", totals)
	}
	switch {
	case r.LeftOut > 0 && r.Target != nil:
		p.Line("  %s", render.Unsure.In("possibly it is reached; --certain-only leaves this out"))
	case r.LeftOut > 0:
		p.Line("  %s", render.Unsure.In(fmt.Sprintf("%s more possibly reached; --certain-only leaves %s out",
			render.Thousands(r.LeftOut), render.Plural(r.LeftOut, "it", "them"))))
	}
	notFollowedText(p, 2, r.NotFollowed)
	shown := r.Reached
	if r.maxPaths > 0 && !p.Wide() {
		shown = shown[:min(r.maxPaths, len(shown))]
	}
	for _, x := range shown {
		p.Line("")
		p.Line("%s %s", render.Strong.In(holdingText(x.Holding)), StyleOf(x.Certainty).In(strings.ToLower(x.Certainty.String())))
		p.Steps(2, stepRows(p, x.Path))
	}
	if more := len(r.Reached) - len(shown); more > 0 {
		p.Line("")
		p.Line("… and %s more (use --max-paths 0, -o wide or -o json)", render.Thousands(more))
	}
}

func (r AttackPathsResult) outcome() string {
	switch c := r.certainty(); {
	case c == attackpaths.No && len(r.Missing) > 0:
		return "is not known to reach " + r.targetText() + ": not everything could be read"
	case c == attackpaths.No && r.certainOnly:
		return "does not certainly reach " + r.targetText()
	default:
		return certaintyText(c, r.targetText())
	}
}

func stepRows(p *render.Page, path []attackpaths.Step) [][4]string {
	var rows [][4]string
	for i, step := range path {
		because := step.Because
		if step.GrantedBy != nil {
			because += fmt.Sprintf(" (%s)", step.GrantedBy)
		}
		if step.DependsOn != "" {
			because += render.Unsure.In("; depends on " + step.DependsOn)
		}
		rows = append(rows, [4]string{
			fmt.Sprintf("%d.", i+1), p.Code(reference.Technique, string(step.Technique)),
			holdingText(step.From) + " → " + holdingText(step.To), render.Faint.In(because),
		})
	}
	return rows
}

// holdingText names a holding as people write it.
func holdingText(h attackpaths.Holding) string {
	if h.Kind == attackpaths.ClusterAdmin {
		return "cluster-admin"
	}
	return h.String()
}

// holdingNouns are the words for counted holdings, in the order of the kinds.
var holdingNouns = [...]struct{ kind, noun string }{
	{attackpaths.Node, "node"},
	{attackpaths.ServiceAccount, "service account"},
	{attackpaths.User, "user"},
	{attackpaths.Group, "group"},
	{attackpaths.Namespace, "namespace"},
	{attackpaths.Secret, "secret"},
	{attackpaths.Pod, "pod"},
}

// CountHoldings counts what is reached without cluster-admin by kind.
func CountHoldings(reached []attackpaths.Reached) []attackpaths.Count {
	counts := map[string]attackpaths.Count{}
	for _, x := range reached {
		c := counts[x.Kind]
		if x.Certainty == attackpaths.Certain {
			c.Certain++
		} else {
			c.Possible++
		}
		c.Kind = x.Kind
		counts[x.Kind] = c
	}
	var all []attackpaths.Count
	for _, n := range holdingNouns {
		if c, ok := counts[n.kind]; ok {
			all = append(all, c)
		}
	}
	return all
}

// CountTexts says how many holdings of each kind there are.
func CountTexts(counts []attackpaths.Count) string {
	var parts []string
	for _, n := range holdingNouns {
		for _, c := range counts {
			if c.Kind != n.kind {
				continue
			}
			text := render.Count(c.Certain+c.Possible, n.noun)
			if c.Possible > 0 {
				text += fmt.Sprintf(" (%s possible)", render.Thousands(c.Possible))
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

func (r AttackPathsResults) Text(p *render.Page) {
	for i, result := range r.Results {
		if i > 0 {
			p.Line("")
		}
		result.Text(p)
	}
}

// Text writes a row for each class of nodes, and the path of those that reach cluster-admin.
func (r AttackPathsClasses) Text(p *render.Page) {
	r.totalsText(p)
	p.Line("")
	var rows [][]string
	for _, c := range r.Classes {
		reached := classCertainty(c)
		certainty := StyleOf(reached).In(reached.String())
		if reached == attackpaths.No && len(r.Missing) > 0 {
			certainty = render.Unsure.In("Unknown")
		}
		if c.ControlPlane {
			certainty += " (control plane)"
		}
		if c.Target != nil {
			nodes := command.Some(c.Nodes, p.Wide())
			rows = append(rows, []string{render.Thousands(len(c.Nodes)), certainty, c.ClusterAdmin.String(), nodes})
			continue
		}
		totals := CountTexts(c.Counts)
		if c.ClusterAdmin == attackpaths.Certain {
			totals = "everything"
		}
		rows = append(rows, []string{render.Thousands(len(c.Nodes)), certainty, totals, command.Some(c.Nodes, p.Wide())})
	}
	if r.ofOther() {
		p.Table(0, []string{"NODES", "TARGET", "CLUSTER-ADMIN", "NAMES"}, rows)
	} else {
		p.Table(0, []string{"NODES", "CLUSTER-ADMIN", "ALSO REACH", "NAMES"}, rows)
	}
	for _, c := range r.Classes {
		if len(c.Path) == 0 {
			continue
		}
		p.Line("")
		p.Line("%s, as from %s:", render.Strong.In(render.Count(len(c.Nodes), "node")+" → "+targetText(r.Target)), c.Nodes[0])
		p.Steps(2, stepRows(p, c.Path))
	}
	r.notFollowedText(p)
	if r.WhatToChange != nil {
		r.adviceText(p)
	}
}

// totalsText counts the nodes by how they reach cluster-admin. Nodes of the control plane are
// counted apart, because no change of rights takes the cluster from them.
func (r AttackPathsClasses) totalsText(p *render.Page) {
	admins, controlPlane := map[attackpaths.Certainty]int{}, 0
	for _, c := range r.Classes {
		if c.ControlPlane {
			controlPlane += len(c.Nodes)
		} else {
			admins[classCertainty(c)] += len(c.Nodes)
		}
	}
	certain := admins[attackpaths.Certain]
	line := fmt.Sprintf("%s of %s %s %s, %s possibly",
		countStyle(attackpaths.Certain, certain), render.Count(r.Nodes, "node"), reach(certain), targetText(r.Target),
		countStyle(attackpaths.Possible, admins[attackpaths.Possible]))
	if r.LeftOut > 0 {
		line += render.Unsure.In(fmt.Sprintf(" (%s left out by --certain-only)", render.Thousands(r.LeftOut)))
	}
	if controlPlane > 0 {
		line += fmt.Sprintf("; %s more %s the control plane", render.Thousands(controlPlane), render.Plural(controlPlane, "runs", "run"))
	}
	if len(r.Missing) > 0 {
		line += render.Unsure.In("; more may, because not everything could be read")
	}
	p.Line("%s", line)
}

// countStyle writes how many nodes reach something: no node is no danger.
func countStyle(c attackpaths.Certainty, n int) string {
	if n == 0 {
		return render.Thousands(n)
	}
	return StyleOf(c).In(render.Thousands(n))
}

// ofOther reports whether the target is another than cluster-admin.
func (r AttackPathsClasses) ofOther() bool {
	return r.Target != nil && r.Target.Kind != attackpaths.ClusterAdmin
}

func (r *AttackPathsResult) ofOther() bool {
	return r.Target != nil && r.Target.Kind != attackpaths.ClusterAdmin
}

// reach returns the verb that agrees with a number of nodes.
func reach(nodes int) string { return render.Plural(nodes, "reaches", "reach") }

const rightsURL = reference.URL + "rights.md"

// notFollowedText counts the rights that are not followed, and lists them on a wide page.
func notFollowedText(p *render.Page, indent int, all []attackpaths.NotFollowed) {
	if len(all) == 0 {
		return
	}
	line := strings.Repeat(" ", indent) + notFollowedCount(all)
	if !p.Wide() {
		p.Line("%s", render.Faint.In(line+" (use -o wide or -o json)"))
		return
	}
	p.Line("%s:", render.Faint.In(line))
	var rows [][]string
	for _, n := range all {
		rows = append(rows, []string{strings.Join(n.Verbs, ","), notFollowedObject(n), notFollowedWhere(n), grantedText(n), n.Why})
	}
	p.Table(indent, []string{"VERBS", "RESOURCE", "WHERE", "GRANTED BY", "WHY"}, rows)
}

func notFollowedCount(all []attackpaths.NotFollowed) string {
	are := "are"
	if len(all) == 1 && all[0].Resource != attackpaths.HostPath {
		are = "is"
	}
	return countNotFollowed(all) + " that may give more " + are + " not followed"
}

// countNotFollowed counts rights and folders: "3 rights and 1 folder".
func countNotFollowed(all []attackpaths.NotFollowed) string {
	folders := 0
	for _, n := range all {
		if n.Resource == attackpaths.HostPath {
			folders++
		}
	}
	var counts []string
	if rights := len(all) - folders; rights > 0 {
		counts = append(counts, render.Count(rights, "right"))
	}
	if folders > 0 {
		counts = append(counts, "folders of nodes")
	}
	return strings.Join(counts, " and ")
}

// notFollowedOnPage are the entries for a page, each once.
func notFollowedOnPage(lists ...[]attackpaths.NotFollowed) (all []report.NotFollowed, counted string) {
	var kept []attackpaths.NotFollowed
	for _, n := range slices.Concat(lists...) {
		entry := report.NotFollowed{
			What: strings.Join(n.Verbs, ",") + " " + notFollowedObject(n), Where: notFollowedWhere(n),
			GrantedBy: grantedText(n), Why: n.Why,
		}
		if !slices.Contains(all, entry) {
			all, kept = append(all, entry), append(kept, n)
		}
	}
	return all, countNotFollowed(kept)
}

// notFollowedObject names a resource as in docs/reference/rights.md.
func notFollowedObject(n attackpaths.NotFollowed) string {
	text := n.Resource
	if n.Group != "" {
		text += "." + n.Group
	}
	if n.Subresource != "" {
		text += "/" + n.Subresource
	}
	return text
}

func notFollowedWhere(n attackpaths.NotFollowed) string {
	where := "whole cluster"
	if len(n.Namespaces) > 0 {
		where = strings.Join(n.Namespaces, ", ")
	}
	if len(n.Names) > 0 {
		where += ": " + strings.Join(n.Names, ", ")
	}
	if n.More {
		where += ", …"
	}
	return where
}

func grantedText(n attackpaths.NotFollowed) string {
	switch {
	case n.Resource == attackpaths.HostPath:
		return "the pods that mount it"
	case n.GrantedBy == nil:
		return "a role that it can bind"
	}
	return n.GrantedBy.String()
}

// notFollowed are the rights that any class reaches; a right of several classes counts once for each.
func (r AttackPathsClasses) notFollowed() []attackpaths.NotFollowed {
	var all []attackpaths.NotFollowed
	for _, c := range r.Classes {
		all = append(all, c.NotFollowed...)
	}
	return all
}

func (r AttackPathsClasses) notFollowedText(p *render.Page) {
	for _, c := range r.Classes {
		if len(c.NotFollowed) > 0 {
			p.Line("")
			p.Line("%s, as %s:", render.Strong.In(render.Count(len(c.Nodes), "node")), c.Nodes[0])
			notFollowedText(p, 2, c.NotFollowed)
		}
	}
}

// addNotFollowed notes in a log how many rights each start reaches that are not followed.
func addNotFollowed(run *sarif.Run, results []AttackPathsResult) {
	results = slices.DeleteFunc(slices.Clone(results), func(r AttackPathsResult) bool { return len(r.NotFollowed) == 0 })
	if len(results) == 0 {
		return
	}
	lines := make([]string, len(results))
	for i, r := range results {
		objects := make([]string, len(r.NotFollowed))
		for j, n := range r.NotFollowed {
			objects[j] = strings.Join(n.Verbs, ",") + " " + notFollowedObject(n)
		}
		lines[i] = r.Start.String() + ": " + notFollowedCount(r.NotFollowed) + ": " + strings.Join(objects, "; ")
	}
	run.Notify("not-followed", "Rights that are reached may give more than paths follow", rightsURL, "note", lines...)
}
