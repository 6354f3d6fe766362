package paths

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// attackPathsFix are remedies as a shell script: of the paths to the target, or of what to change.
type attackPathsFix struct {
	paths  []fixedPath
	advice *attackpaths.Advice
	// graph made the remedies of paths.
	graph *attackpaths.Graph
	// target is the object that was asked for.
	target string
	// unsure is true if not everything could be read.
	unsure bool
}

type fixedPath struct {
	title string
	steps []attackpaths.Step
}

// fix is the script for the paths to the target, which is cluster-admin if none is named.
func (r AttackPathsResults) fix(g *attackpaths.Graph) attackPathsFix {
	f := attackPathsFix{target: clusterAdmin, graph: g}
	for _, result := range r.Results {
		f.unsure = f.unsure || len(result.Missing) > 0
		if result.Target != nil {
			f.target = holdingText(result.Target.Holding)
		}
		for _, x := range result.Reached {
			if result.Target != nil || x.Kind == attackpaths.ClusterAdmin {
				f.paths = append(f.paths, fixedPath{holdingText(result.Start) + " → " + f.target, x.Path})
			}
		}
	}
	return f
}

// fix is the script for what to change, or else for the paths of the classes.
func (r AttackPathsClasses) fix(g *attackpaths.Graph) attackPathsFix {
	f := attackPathsFix{advice: r.WhatToChange, graph: g, target: targetText(r.Target), unsure: len(r.Missing) > 0}
	for _, c := range r.Classes {
		if len(c.Path) > 0 && f.advice == nil {
			title := render.Count(len(c.Nodes), "node") + " → " + f.target + ", as from " + c.Nodes[0]
			f.paths = append(f.paths, fixedPath{title, c.Path})
		}
	}
	return f
}

func (f attackPathsFix) steps() [][]attackpaths.Step {
	all := make([][]attackpaths.Step, len(f.paths))
	for i := range f.paths {
		all[i] = f.paths[i].steps
	}
	return all
}

// Text writes the script. Of each path, one remedy runs, and the others are comments.
func (f attackPathsFix) Text(p *render.Page) {
	if f.unsure {
		p.Comment("Not everything could be read: there may be other paths.")
	}
	if f.advice != nil {
		f.adviceScript(p)
		return
	}
	if len(f.paths) == 0 && f.unsure {
		p.Comment("no path to %s is known", f.target)
		return
	}
	if len(f.paths) == 0 {
		p.Comment("nothing to change: there is no path to %s", f.target)
		return
	}
	p.Comment("A path ends when one of its steps does. For each path, the change that takes the fewest other rights runs;")
	p.Comment("the others are comments. Nothing that deletes something, starts it again or is of Kubernetes itself runs unasked.")
	p.Comment("Afterwards, ask again: another path may lead to the same.")
	first := make([][]attackpaths.Step, len(f.paths)) // the steps of each path in the order of their remedies
	var ready []*verdict.Remedy
	for i, path := range f.paths {
		if first[i] = path.remedies(); len(first[i]) > 0 && readiness(first[i][0].Remedy) == 0 {
			ready = append(ready, first[i][0].Remedy)
		}
	}
	run := combined{remedy: f.graph.Together(ready...)}
	for i, path := range f.paths {
		p.Line("")
		p.Comment("%s", path.title)
		if len(first[i]) > 0 && readiness(first[i][0].Remedy) == 0 && len(run.left(first[i][0].Remedy)) == 0 {
			p.Comment("A command above ends this path.")
			continue
		}
		run.writeRemedies(p, first[i])
	}
}

// combined are the remedies of a script that run, made together: of each object, one command makes all changes.
type combined struct {
	remedy  *verdict.Remedy
	written []verdict.Object
}

// left are the changes of a remedy's objects that no command above makes.
func (c *combined) left(r *verdict.Remedy) []verdict.Change {
	return slices.DeleteFunc(slices.Clone(c.remedy.Changes), func(made verdict.Change) bool {
		concerned := slices.ContainsFunc(r.Changes, func(own verdict.Change) bool { return own.Object == made.Object })
		return !concerned || slices.Contains(c.written, made.Object)
	})
}

// write writes the commands of a remedy, each object's once, or the remedy as a comment if it does not run.
func (c *combined) write(p *render.Page, r *verdict.Remedy) {
	if readiness(r) > 0 {
		p.RemedyAsComment(*r)
		return
	}
	own := *r
	if own.Changes = c.left(r); len(own.Changes) == 0 {
		p.Comment("A command above makes this change too.")
		return
	}
	p.Remedy(own, nil)
	for _, made := range own.Changes {
		c.written = append(c.written, made.Object)
	}
}

// remedies are the steps with different remedies, the one that runs first.
func (path fixedPath) remedies() []attackpaths.Step {
	var order []attackpaths.Step
	for _, step := range path.steps {
		same := func(s attackpaths.Step) bool { return reflect.DeepEqual(s.Remedy, step.Remedy) }
		if step.Remedy != nil && !slices.ContainsFunc(order, same) {
			order = append(order, step)
		}
	}
	slices.SortStableFunc(order, func(a, b attackpaths.Step) int {
		return cmp.Or(readiness(a.Remedy)-readiness(b.Remedy), cmp.Compare(a.Remedy.OtherRights, b.Remedy.OtherRights))
	})
	return order
}

// writeRemedies writes the first remedy to run, and the others as comments.
func (c *combined) writeRemedies(p *render.Page, steps []attackpaths.Step) {
	if len(steps) == 0 || readiness(steps[0].Remedy) > 0 {
		p.Comment("No change is ready to run: choose one of these, and take the # away.")
	}
	for i, step := range steps {
		or := ""
		if i > 0 {
			p.Line("")
			or = "or "
		}
		p.Comment("%s%s: %s → %s, because %s", or, step.Technique, holdingText(step.From), holdingText(step.To), step.Because)
		if step.Remedy.OtherRights > 0 {
			p.Comment("It takes %s too.", render.Count(step.Remedy.OtherRights, "other right"))
		}
		if i == 0 {
			c.write(p, step.Remedy)
		} else {
			p.RemedyAsComment(*step.Remedy)
		}
	}
}

// readiness orders remedies: remedies that take only rights, remedies that do more, and none.
func readiness(r *verdict.Remedy) int {
	switch {
	case len(r.Changes) == 0:
		return 2
	case r.Disrupts != "" || !render.Runs(*r):
		return 1
	}
	return 0
}

func (f attackPathsFix) adviceScript(p *render.Page) {
	if len(f.advice.Set) == 0 {
		p.Comment("nothing to change: no set of changes helps a node")
	} else {
		p.Comment("These changes help together. Those that delete something, start it again or are of Kubernetes itself are")
		p.Comment("comments: take the # away to make them too.")
	}
	ready := slices.DeleteFunc(slices.Clone(f.advice.Set), func(c attackpaths.Change) bool { return readiness(c.Remedy) > 0 })
	run := combined{remedy: f.advice.Together(ready...)}
	for _, c := range f.advice.Set {
		p.Line("")
		p.Comment("%s", c)
		run.write(p, c.Remedy)
	}
	if placing := f.advice.Placing; placing != nil && placing.Remedy != nil {
		p.Line("")
		p.Comment("Or run the pods that give %s on few nodes: %s", f.target, strings.Join(placing.Nodes, ", "))
		p.RemedyAsComment(*placing.Remedy)
	}
}

// showsRemedies reports whether a format has the remedies of steps.
func showsRemedies(format render.Format) bool {
	return format.IsDocument() || format == render.HTML
}

func pathsOf(reached []attackpaths.Reached) [][]attackpaths.Step {
	paths := make([][]attackpaths.Step, len(reached))
	for i := range reached {
		paths[i] = reached[i].Path
	}
	return paths
}

// shownChanges is the maximum number of rows of changes that help alone; wide shows all.
const shownChanges = 10

// adviceText writes what helps alone, then a set of changes that helps all nodes.
func (r AttackPathsClasses) adviceText(p *render.Page) {
	a, target := r.WhatToChange, targetText(r.Target)
	p.Section("What to change")
	if len(r.Missing) > 0 {
		p.Line("  %s", render.Unsure.In("Not everything could be read: there may be other paths, which these changes do not end."))
	}
	if a.Nodes == (attackpaths.NodesThatReach{}) && len(r.Missing) > 0 {
		return
	}
	if a.Nodes == (attackpaths.NodesThatReach{}) {
		p.Line("  nothing: no node outside the control plane reaches %s", target)
		return
	}
	if len(a.Alone) == 0 {
		p.Line("  no change helps a node alone")
	} else {
		adviceTable(p, a, target)
	}
	p.Line("")
	goal := "that no node outside the control plane reaches " + target
	if r.certainOnly {
		goal = "that none certainly reaches " + target
	}
	switch {
	case len(a.Set) == 0:
		p.Line("  No set of such changes helps further.")
	case len(a.Remaining) > 0:
		p.Line("  Together, these make the most of what such changes can do (a small set, not the smallest):")
	default:
		p.Line("  Together, these make sure %s (a small set, not the smallest):", goal)
	}
	for _, c := range a.Set {
		p.Line("  - %s", c)
	}
	defer placingText(p, a, target)
	if len(a.Remaining) > 0 {
		p.Line("")
		p.Line("  Then %s still certainly %s it, and %s possibly. A path that remains:",
			render.Count(a.Left.Certain, "node"), reach(a.Left.Certain), render.Thousands(a.Left.Possible))
		p.Steps(4, stepRows(p, a.Remaining))
	}
}

func adviceTable(p *render.Page, a *attackpaths.Advice, target string) {
	p.Line("  How many nodes one change helps: they no longer certainly reach %s, or not at all.", target)
	more := render.TableOf(p, 2, shownChanges, []string{"NODES", "NOT AT ALL", "CHANGE"}, a.Alone, func(c attackpaths.Change) []string {
		return []string{render.Thousands(c.Certain), render.Thousands(c.Entirely), c.String()}
	})
	if more > 0 {
		p.Line("  … and %s more (-o wide or -o json shows all)", render.Thousands(more))
	}
	if a.NotEvaluated > 0 {
		p.Line("  not evaluated: %s on the paths of fewer nodes", render.Count(a.NotEvaluated, "more change"))
	}
}

func placingText(p *render.Page, a *attackpaths.Advice, target string) {
	placing := a.Placing
	if placing == nil {
		return
	}
	p.Section("Where to run the pods that give %s", target)
	if len(placing.Nodes) == 0 {
		p.Line("  None of these pods can be placed:")
	} else {
		p.Line("  %s of the %s with these pods can be a pool: %s.",
			render.Thousands(len(placing.Nodes)), render.Count(placing.Before, "node"), command.Some(placing.Nodes, p.Wide()))
		p.Line("  Then %s no longer certainly %s %s, and %s not at all. The other changes are not needed for that.",
			render.Count(placing.Certain, "node"), reach(placing.Certain), target,
			render.Thousands(placing.Entirely))
		p.Line("  The nodes get the label and the taint %s=%s (--what-to-change --fix prints the commands).",
			placing.Taint.Key, placing.Taint.Value)
	}
	var rows [][]string
	for _, w := range append(placing.Workloads, placing.Unplaced...) {
		place := "in the pool"
		if w.Why != "" {
			place = render.Unsure.In("not placed: " + w.Why)
		}
		object := rbac.Ref{Kind: w.Object.Kind, Namespace: w.Object.Namespace, Name: w.Object.Name}
		rows = append(rows, []string{render.Thousands(w.Nodes), object.String(), holdingText(w.Through), place})
	}
	p.Table(2, []string{"NODES", "WORKLOAD", "THROUGH", "PLACE"}, rows)
}
