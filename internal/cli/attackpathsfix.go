package cli

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// attackPathsFix are remedies as a shell script: of the paths to the target, or of what to change.
type attackPathsFix struct {
	paths  []fixedPath
	advice *attackpaths.Advice
	// target is what was asked for.
	target string
}

// fixedPath is a path that the script ends.
type fixedPath struct {
	title string
	steps []attackpaths.Step
}

// fix is the script for the paths to the target, which is cluster-admin if none is named.
func (r attackPathsResults) fix() attackPathsFix {
	f := attackPathsFix{target: clusterAdmin}
	for _, result := range r.Results {
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
func (r attackPathsClasses) fix() attackPathsFix {
	f := attackPathsFix{advice: r.WhatToChange, target: targetText(r.Target)}
	for _, c := range r.Classes {
		if len(c.Path) > 0 && f.advice == nil {
			title := render.Count(len(c.Nodes), "node") + " → " + f.target + ", as from " + c.Nodes[0]
			f.paths = append(f.paths, fixedPath{title, c.Path})
		}
	}
	return f
}

// steps are the paths whose remedies the script needs.
func (f attackPathsFix) steps() [][]attackpaths.Step {
	all := make([][]attackpaths.Step, len(f.paths))
	for i := range f.paths {
		all[i] = f.paths[i].steps
	}
	return all
}

// Text writes the script. Of each path, one remedy runs, and the others are comments.
func (f attackPathsFix) Text(p *render.Page) {
	if f.advice != nil {
		f.adviceScript(p)
		return
	}
	if len(f.paths) == 0 {
		p.Comment("nothing to change: there is no path to %s", f.target)
		return
	}
	p.Comment("A path ends when one of its steps does. For each path, the change that takes the fewest other rights runs;")
	p.Comment("the others are comments. Nothing that deletes something, starts it again or is of Kubernetes itself runs unasked.")
	p.Comment("Afterwards, ask again: another path may lead to the same.")
	chosen := map[string]bool{}
	for _, path := range f.paths {
		p.Line("")
		p.Comment("%s", path.title)
		path.script(p, chosen)
	}
}

// script writes the remedies of a path. Those that run are noted.
func (path fixedPath) script(p *render.Page, chosen map[string]bool) {
	var order []attackpaths.Step
	for _, step := range path.steps {
		if step.Remedy != nil && !slices.ContainsFunc(order, func(s attackpaths.Step) bool { return remedyID(s) == remedyID(step) }) {
			order = append(order, step)
		}
	}
	slices.SortStableFunc(order, func(a, b attackpaths.Step) int {
		return cmp.Or(readiness(a.Remedy)-readiness(b.Remedy), cmp.Compare(a.Remedy.OtherRights, b.Remedy.OtherRights))
	})
	if slices.ContainsFunc(order, func(s attackpaths.Step) bool { return chosen[remedyID(s)] }) {
		p.Comment("A change above ends this path.")
		return
	}
	if len(order) == 0 || readiness(order[0].Remedy) > 0 {
		p.Comment("No change is ready to run: choose one of these, and take the # away.")
	}
	for i, step := range order {
		if i > 0 {
			p.Line("")
		}
		runs := i == 0 && readiness(step.Remedy) == 0
		or := ""
		if i > 0 {
			or = "or "
		}
		p.Comment("%s%s: %s → %s, because %s", or, step.Technique, holdingText(step.From), holdingText(step.To), step.Because)
		if step.Remedy.OtherRights > 0 {
			p.Comment("It takes %s too.", render.Count(step.Remedy.OtherRights, "other right"))
		}
		if runs {
			chosen[remedyID(step)] = true
			p.Remedy(*step.Remedy, nil)
		} else {
			p.RemedyAsComment(*step.Remedy)
		}
	}
}

// readiness orders remedies: those that take only rights, those that do more, and none.
func readiness(r *verdict.Remedy) int {
	switch {
	case len(r.Changes) == 0:
		return 2
	case r.Disrupts != "" || !render.Runs(*r):
		return 1
	}
	return 0
}

func remedyID(step attackpaths.Step) string {
	text, err := json.Marshal(step.Remedy)
	if err != nil {
		panic("a remedy does not encode: " + err.Error())
	}
	return string(text)
}

func (f attackPathsFix) adviceScript(p *render.Page) {
	if len(f.advice.Set) == 0 {
		p.Comment("nothing to change: no set of changes helps a node")
	} else {
		p.Comment("These changes help together. Those that delete something, start it again or are of Kubernetes itself are")
		p.Comment("comments: take the # away to make them too.")
	}
	for _, c := range f.advice.Set {
		p.Line("")
		p.Comment("%s", c)
		switch {
		case c.Remedy == nil:
		case readiness(c.Remedy) == 0:
			p.Remedy(*c.Remedy, nil)
		default:
			p.RemedyAsComment(*c.Remedy)
		}
	}
	placingScript(p, f.advice.Placing, f.target)
}

// showsRemedies reports whether a format has the remedies of steps.
func showsRemedies(format render.Format) bool {
	return format == render.JSON || format == render.YAML || format == render.HTML
}

// pathsOf are the paths to holdings.
func pathsOf(reached []attackpaths.Reached) [][]attackpaths.Step {
	paths := make([][]attackpaths.Step, len(reached))
	for i := range reached {
		paths[i] = reached[i].Path
	}
	return paths
}
