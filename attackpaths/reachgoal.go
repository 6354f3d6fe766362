package attackpaths

import (
	"slices"
	"sync"
)

// markNodes marks the nodes that reach the goal, of those that are wanted. When one does that
// only with joins, found is called for it and may mark what it does so through.
func (g *Graph) markNodes(possible bool, groups func() []group, wanted map[vertex]bool, found func(r *reverse, node vertex)) *reverse {
	r, refused := g.leadsToGoal(possible), map[vertex]bool{}
	isOpen := func(v vertex) bool { return wanted[v] && !r.marked[v] && !refused[v] }
	isNoNode := func(v vertex) bool { return g.keys[v].kind != isNode }
	open := false
	for v := range wanted {
		open = open || isOpen(v)
	}
	if !open {
		return r
	}
	for _, group := range groups() {
		first := slices.IndexFunc(group.nodes, isOpen)
		if first < 0 {
			continue
		}
		common := group.common
		if !possible {
			common = g.certainly(group)
		}
		s := g.solverBeyond(possible, common)
		inBase := slices.DeleteFunc(slices.Clone(s.reached), isNoNode)
		met, checked := false, 0 // whether the base has a marked vertex, of so many
		for _, node := range group.nodes[first:] {
			if !isOpen(node) {
				continue
			}
			for ; !met && checked < len(r.order); checked++ {
				met = s.base.has[r.order[checked]]
			}
			meets := met
			if !meets {
				s.stop = func(v vertex) bool {
					meets = r.marked[v]
					return meets
				}
				s.solve(node)
			}
			if meets {
				found(r, node)
				r.mark(node)
				continue
			}
			// The node does not reach the goal, and no node that it reaches does.
			for _, v := range slices.Concat(slices.DeleteFunc(slices.Clone(s.reached), isNoNode), inBase) {
				refused[v] = true
			}
			inBase = nil
		}
		g.release(s)
	}
	return r
}

// reachGoal says how each of some nodes reaches the goal.
func (g *Graph) reachGoal(names []string) []Certainty {
	wanted := map[vertex]bool{}
	for _, name := range names {
		if v, ok := g.index[key{kind: isNode, name: name}]; ok {
			wanted[v] = true
		}
	}
	groups := sync.OnceValue(g.groups)
	ignore := func(*reverse, vertex) {}
	reach := make([]Certainty, len(names))
	for _, certainty := range [...]Certainty{Certain, Possible} {
		marks := g.markNodes(certainty == Possible, groups, wanted, ignore)
		for i, name := range names {
			if v, ok := g.index[key{kind: isNode, name: name}]; ok && wanted[v] && marks.marked[v] {
				reach[i] = certainty
				delete(wanted, v)
			}
		}
	}
	return reach
}
