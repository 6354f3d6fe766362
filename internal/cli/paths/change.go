package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

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
	shown := render.Shown(p, shownChanges, a.Alone)
	var rows [][]string
	for _, c := range shown {
		rows = append(rows, []string{render.Thousands(c.Certain), render.Thousands(c.Entirely), c.String()})
	}
	p.Line("  How many nodes one change helps: they no longer certainly reach %s, or not at all.", target)
	p.Table(2, []string{"NODES", "NOT AT ALL", "CHANGE"}, rows)
	if more := len(a.Alone) - len(shown); more > 0 {
		p.Line("  … and %s more (-o wide or -o json shows all)", render.Thousands(more))
	}
	if a.NotEvaluated > 0 {
		p.Line("  not evaluated: %s on the paths of fewer nodes", render.Count(a.NotEvaluated, "more change"))
	}
}
