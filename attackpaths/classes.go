package attackpaths

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// classID is the same for nodes of one class.
type classID struct {
	target, admin     Certainty
	controlPlane      bool
	withStart         [2]bool
	certain, possible setHash
}

// classes puts nodes together that reach the same, but for themselves: their sets are the same
// without themselves, or, where they reach each other, with themselves. If there is a target, only whether they reach
// one of the ends matters.
func (g *Graph) classes(ends []vertex, target bool) []Class {
	groups := g.groups()
	found := make([][]nodeReach, len(groups))
	inParallel(len(groups), func(i int) { found[i] = g.groupReach(groups[i], ends) })
	reach := map[vertex]*nodeReach{}
	for i, group := range groups {
		for j, v := range group.nodes {
			reach[v] = &found[i][j]
		}
	}
	type class struct {
		Class
		*nodeReach
		first vertex
		open  *openRights
		// groups are those whose rights are in open.
		groups map[*openRights]bool
	}
	index := map[classID]int{}
	var all []class
	for _, start := range slices.Sorted(maps.Keys(reach)) {
		if target && start == ends[0] {
			continue
		}
		r := reach[start]
		at, ids := -1, r.classIDs(start, target)
		for _, id := range ids {
			if known, ok := index[id]; ok {
				at = known
			}
		}
		if at < 0 {
			at = len(all)
			c := class{nodeReach: r, first: start, open: newOpenRights(), groups: map[*openRights]bool{}}
			c.Class = Class{ClusterAdmin: r.admin, ControlPlane: r.controlPlane, Counts: r.counts()}
			if target {
				c.Target, c.Counts = &r.target, nil
			}
			all = append(all, c)
		}
		c := &all[at]
		if !c.groups[r.openOfGroup] {
			c.groups[r.openOfGroup] = true
			c.open.merge(r.openOfGroup)
		}
		c.open.merge(r.open)
		for _, id := range ids {
			index[id] = at
		}
		c.Nodes = append(c.Nodes, g.keys[start].name)
	}
	slices.SortFunc(all, func(a, b class) int {
		return cmp.Or(
			-cmp.Compare(a.target, b.target), -cmp.Compare(a.admin, b.admin), compareBools(a.controlPlane, b.controlPlane),
			-cmp.Compare(len(a.Nodes), len(b.Nodes)), strings.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	classes := make([]Class, len(all))
	until := none
	if !target {
		until = ends[0]
	}
	for i, c := range all {
		classes[i] = c.Class
		classes[i].NotFollowed = c.open.list(g)
		if c.target != No {
			s := g.solver(c.target == Possible)
			s.solveUntil(c.first, until)
			classes[i].Path = s.path(s.nearest(ends))
			g.release(s)
		}
	}
	return classes
}

// classIDs are the same for the nodes of a class in one place: what is reached certainly and at all, each with and without the
// node itself.
func (r *nodeReach) classIDs(node vertex, target bool) []classID {
	if target {
		return []classID{{target: r.target, admin: r.admin, controlPlane: r.controlPlane}}
	}
	var ids []classID
	for _, withStart := range [...][2]bool{{}, {true, true}, {true, false}, {false, true}} {
		id := classID{No, r.admin, r.controlPlane, withStart, r.certain.hash, r.all.hash}
		if !withStart[0] {
			id.certain.add(node, -1)
		}
		if !withStart[1] {
			id.possible.add(node, -1)
		}
		ids = append(ids, id)
	}
	return ids
}
