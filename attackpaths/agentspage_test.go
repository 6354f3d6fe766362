package attackpaths_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// agentsPage writes docs/evidence/known-agents.md.
type agentsPage struct {
	clusters, agents []assessment

	out strings.Builder
}

func (p *agentsPage) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// text is the page.
func (p *agentsPage) text() string {
	p.out.WriteString(agentsIntroduction)
	p.line("\n## Summary\n")
	p.line("The holdings of one node: first of every node, which has pods of the agent's DaemonSets only, then after the")
	p.line("slash of the controllers' node, if there is one. *Accounts* counts accounts that are not the agent's own " +
		"and are certainly reached.\n")
	p.line("| | release | runs on | cluster-admin | all secrets | all other nodes | accounts |")
	p.line("|---|---|---|---|---|---|---|")
	for _, x := range slices.Concat(p.clusters, p.agents) {
		cells := []string{fmt.Sprintf("[%s](#%s)", x.title, x.anchor()), x.release, x.place()}
		for i := range goals {
			cells = append(cells, x.both(func(g, _ given) string { return g.cell(i) }))
		}
		p.line("| %s |", strings.Join(append(cells, x.both(x.accounts)), " | "))
	}
	p.line("\n## Default clusters")
	for _, x := range p.clusters {
		p.section(x)
	}
	p.line("\n## Agents")
	for _, x := range p.agents {
		p.section(x)
	}
	p.out.WriteString(agentsLimits)
	return p.out.String()
}

// place says on which nodes the agent runs.
func (x assessment) place() string {
	switch {
	case x.daemons() && x.others():
		return "every node, and controllers"
	case x.daemons():
		return "every node"
	}
	return "controllers' node"
}

// both is a cell for every node, and for the controllers' node if there is one.
func (x assessment) both(cell func(g, before given) string) string {
	if !x.others() {
		return cell(x.any, x.anyBefore)
	}
	return cell(x.any, x.anyBefore) + " / " + cell(x.controllers, x.controllersBefore)
}

// cell says how a goal is reached, also by cluster-admin.
func (g given) cell(goal int) string {
	c := max(g.certainty[goal], g.certainty[0])
	if c == attackpaths.Certain {
		return "**certain**"
	}
	return strings.ToLower(c.String())
}

// accounts counts the service accounts of others that a node certainly reaches.
func (x assessment) accounts(g, before given) string {
	if g.certainty[0] == attackpaths.Certain {
		return "all"
	}
	n := 0
	for _, r := range g.beyond(before, x.own()) {
		if r.Kind == attackpaths.ServiceAccount && r.Certainty == attackpaths.Certain {
			n++
		}
	}
	return fmt.Sprint(n)
}

// section writes what is known of an agent.
func (p *agentsPage) section(x assessment) {
	p.line("\n### %s\n\n%s\n", x.title, x.about)
	p.line("- **Release:** %s of <%s>", x.release, x.project)
	p.line("- **Source:** %s", x.source)
	p.line("- **Facts:** [%s](../%s)", filepath.Base(x.path), x.path)
	p.line("- **Runs as:** %s", x.runsOn())
	for _, note := range x.notes {
		p.line("- **Note:** %s", note)
	}
	p.line("\n| from | cluster-admin | all secrets | all other nodes |\n|---|---|---|---|")
	p.row("every node", x.any)
	if x.others() {
		p.row("controllers' node", x.controllers)
	}
	if x.others() && x.gives() {
		p.row("every node, with the controllers on nodes of their own", x.apart)
	}
	if !x.gives() {
		p.line("\nNo worker reaches what is not the agent's own, so that there is nothing to change.")
	}
	p.beyond(x)
	p.paths(x)
	p.changes(x)
}

func (p *agentsPage) row(name string, g given) {
	cells := make([]string, len(goals))
	for i := range goals {
		cells[i] = g.cell(i)
	}
	p.line("| %s | %s |", name, strings.Join(cells, " | "))
}

// beyond lists what is reached besides.
func (p *agentsPage) beyond(x assessment) {
	if text := reachedText(x.any.beyond(x.anyBefore, x.own())); text != "" {
		p.line("\nEvery node also reaches %s.", text)
	}
	if !x.others() {
		return
	}
	had := x.any
	had.reached = append(slices.Clone(x.controllersBefore.reached), x.any.reached...)
	if text := reachedText(x.controllers.beyond(had, x.own())); text != "" {
		p.line("\nThe controllers' node also reaches %s.", text)
	}
}

// reachedText counts holdings by kind and names some: "2 secrets (a/b, c/d)".
func reachedText(all []attackpaths.Reached) string {
	kinds := []struct{ kind, one, more string }{
		{attackpaths.Node, "node", "nodes"},
		{attackpaths.ServiceAccount, "service account", "service accounts"},
		{attackpaths.Namespace, "namespace in which it may create pods", "namespaces in which it may create pods"},
		{attackpaths.Secret, "secret", "secrets"},
		{attackpaths.User, "user", "users"},
		{attackpaths.Group, "group", "groups"},
	}
	var parts []string
	for _, k := range kinds {
		for _, certainty := range []attackpaths.Certainty{attackpaths.Certain, attackpaths.Possible} {
			var names []string
			for _, x := range all {
				if x.Kind == k.kind && x.Certainty == certainty {
					names = append(names, "`"+strings.TrimPrefix(x.Namespace+"/"+x.Name, "/")+"`")
				}
			}
			if len(names) > 0 {
				parts = append(parts, someNames(names, k.one, k.more, certainty))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func someNames(names []string, one, more string, certainty attackpaths.Certainty) string {
	const shown = 3
	text := fmt.Sprintf("%d %s", len(names), more)
	if len(names) == 1 {
		text = "1 " + one
	}
	if certainty == attackpaths.Possible {
		text = "possibly " + text
	}
	if len(names) > shown {
		return text + " (" + strings.Join(names[:shown], ", ") + ", …)"
	}
	return text + " (" + strings.Join(names, ", ") + ")"
}

// paths writes the shortest path to each goal from the node that gives more.
func (p *agentsPage) paths(x assessment) {
	for i, goal := range goals {
		if !x.shows(i) {
			continue
		}
		from := x.any
		if x.controllers.certainty[i] > x.any.certainty[i] {
			from = x.controllers
		}
		p.line("\nPath to %s, %s:\n", goal.name, strings.ToLower(from.certainty[i].String()))
		for n, step := range from.paths[i] {
			p.line("%d. %s", n+1, stepText(step))
		}
	}
}

// stepText is a step in words.
func stepText(s attackpaths.Step) string {
	text := fmt.Sprintf("[%s](../reference/%s): %s → %s: %s", s.Technique, techniquePage(s.Technique), s.From, toText(s.To), s.Because)
	if s.GrantedBy != nil {
		text += fmt.Sprintf(" (%s)", s.GrantedBy)
	}
	if s.DependsOn != "" {
		text += "; depends on " + s.DependsOn
	}
	return text
}

func toText(h attackpaths.Holding) string {
	if h.Kind == attackpaths.ClusterAdmin {
		return "cluster-admin"
	}
	return h.String()
}

// changes writes the remedies.
func (p *agentsPage) changes(x assessment) {
	switch {
	case x.worst(0) == attackpaths.Possible, sameChanges(x.certain.alone, x.all.alone):
		p.advice("no worker reaches cluster-admin", x.all)
	case x.worst(0) == attackpaths.Certain:
		p.advice("no worker certainly reaches cluster-admin", x.certain)
		if !slices.EqualFunc(x.certain.set, x.all.set, sameChange) {
			p.advice("none reaches it at all", x.all)
		}
	}
	for i, goal := range goals {
		if i == 0 && hasRule(x.all.alone) {
			continue
		}
		if len(x.rules[i]) > 0 {
			p.line("\nSo that no worker reaches %s, all of these rules have to be removed:\n", goal.name)
			p.list(x.rules[i])
		}
	}
}

func (p *agentsPage) advice(goal string, a advice) {
	switch {
	case len(a.alone) == 1:
		p.line("\nSo that %s, this is enough:\n", goal)
		p.list(a.alone)
	case len(a.alone) > 0:
		p.line("\nSo that %s, each of these is enough:\n", goal)
		p.list(a.alone)
	case len(a.set) == 0:
		p.line("\nNo change of bindings, rules, mounts or Pod Security labels makes sure that %s.", goal)
	default:
		p.line("\nSo that %s, all of these together:\n", goal)
		p.list(a.set)
		if len(a.remaining) > 0 {
			p.line("\nThen cluster-admin is still %s.", strings.ToLower(a.left.String()))
		}
	}
}

func hasRule(changes []attackpaths.Change) bool {
	return slices.ContainsFunc(changes, func(c attackpaths.Change) bool { return c.Kind == attackpaths.RemoveRule })
}

func sameChange(x, y attackpaths.Change) bool { return x.String() == y.String() }

func sameChanges(a, b []attackpaths.Change) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, sameChange)
}

// list writes changes, the removal of rules first: it takes the least.
func (p *agentsPage) list(changes []attackpaths.Change) {
	order := []attackpaths.ChangeKind{
		attackpaths.RemoveRule, attackpaths.RemoveBinding, attackpaths.RemoveMount, attackpaths.RestrictPods,
	}
	for _, kind := range order {
		for _, c := range changes {
			if c.Kind == kind {
				p.line("- %s", c)
			}
		}
	}
}
