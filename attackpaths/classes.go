package attackpaths

import (
	"cmp"
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
	type class struct {
		Class
		*nodeReach
		first vertex
		// open are the rights that are not followed, of nodes and groups.
		open map[*openRights]bool
	}
	var nodes []vertex
	for v, k := range g.keys {
		if k.kind == isNode && !(target && vertex(v) == ends[0]) {
			nodes = append(nodes, vertex(v))
		}
	}
	reach, index := g.reachOfNodes(nodes, ends), map[classID]*class{}
	var all []*class
	for _, start := range nodes {
		r := reach[start]
		var c *class
		ids := r.classIDs(start, target)
		for _, id := range ids {
			if known := index[id]; known != nil {
				c = known
			}
		}
		if c == nil {
			c = &class{nodeReach: r, first: start, open: map[*openRights]bool{}}
			c.Class = Class{ClusterAdmin: r.admin, ControlPlane: r.controlPlane, Counts: r.counts()}
			if target {
				c.Target, c.Counts = &r.target, nil
			}
			all = append(all, c)
		}
		for _, id := range ids {
			index[id] = c
		}
		c.open[r.openOfGroup], c.open[r.open] = true, true
		c.Nodes = append(c.Nodes, g.keys[start].name)
	}
	slices.SortFunc(all, func(a, b *class) int {
		return cmp.Or(
			-cmp.Compare(a.target, b.target), -cmp.Compare(a.admin, b.admin), compareBools(a.controlPlane, b.controlPlane),
			-cmp.Compare(len(a.Nodes), len(b.Nodes)), strings.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	classes := make([]Class, len(all))
	for i, c := range all {
		open := newOpenRights()
		for more := range c.open {
			open.merge(more)
		}
		c.NotFollowed = open.list(g)
		if c.target != No {
			s := g.solver(c.target == Possible)
			if target {
				s.solve(c.first)
			} else {
				s.solveUntil(c.first, ends[0])
			}
			c.Path = s.path(s.nearest(ends))
			g.release(s)
		}
		classes[i] = c.Class
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
	for _, withStart := range [...][2]bool{{}, {true, true}, {false, true}} {
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
