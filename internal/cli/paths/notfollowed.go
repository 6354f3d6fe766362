package paths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

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

// notFollowedText writes what each class reaches that is not followed.
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
