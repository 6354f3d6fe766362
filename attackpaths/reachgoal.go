package attackpaths

import (
	"slices"
	"sync"
)

// all reports whether all vertices of a set are marked.
func (r *reverse) all(set map[vertex]bool) bool {
	for v := range set {
		if v != none && !r.marked[v] {
			return false
		}
	}
	return true
}

// markNodes marks the nodes that reach the goal, of those that are wanted. When one does that
// only with joins, found is called for it and may mark what it does so through.
func (g *Graph) markNodes(possible bool, groups func() []group, wanted map[vertex]bool, found func(r *reverse, node vertex)) *reverse {
	s := &nodeSearch{reverse: g.leadsToGoal(possible), refused: map[vertex]bool{}}
	if s.all(wanted) {
		return s.reverse
	}
	for _, group := range groups() {
		s.solver, s.checked = nil, 0
		for _, node := range group.nodes {
			if !wanted[node] || s.marked[node] || s.refused[node] {
				continue
			}
			if s.solver == nil {
				s.begin(group, possible)
			}
			if s.baseMeets() || s.meets(node) {
				found(s.reverse, node)
				s.mark(node)
			} else {
				s.refuse()
			}
		}
		if s.solver != nil {
			g.release(s.solver)
		}
	}
	return s.reverse
}

// nodeSearch finds the nodes of one group after the other that reach the goal.
type nodeSearch struct {
	*reverse
	// solver has what the nodes of the group have in common as its base.
	solver *solver
	// baseNodes are the nodes in the base, until they are refused.
	baseNodes []vertex
	// checked is how many marked vertices are known not to be in the base, and met is true if one is.
	checked int
	met     bool
	// refused are the nodes that do not reach the goal.
	refused map[vertex]bool
}

func (s *nodeSearch) begin(nodes group, possible bool) {
	common := nodes.common
	if !possible {
		common = s.certainly(nodes)
	}
	s.solver, s.met = s.solverBeyond(possible, common), false
	s.baseNodes = slices.DeleteFunc(slices.Clone(s.solver.reached), func(v vertex) bool { return s.keys[v].kind != isNode })
}

// meets reports whether a marked vertex is reached from a node.
func (s *nodeSearch) meets(node vertex) bool {
	met := false
	s.solver.stop = func(v vertex) bool {
		met = s.marked[v]
		return met
	}
	s.solver.solve(node)
	return met
}

// baseMeets reports whether a vertex of the base is marked.
func (s *nodeSearch) baseMeets() bool {
	for ; !s.met && s.checked < len(s.order); s.checked++ {
		s.met = s.solver.base.has[s.order[s.checked]]
	}
	return s.met
}

// refuse notes that the node which was searched from, and those that it reaches, do not reach
// the goal.
func (s *nodeSearch) refuse() {
	for _, v := range s.solver.reached {
		if s.keys[v].kind == isNode {
			s.refused[v] = true
		}
	}
	for _, v := range s.baseNodes {
		s.refused[v] = true
	}
	s.baseNodes = nil
}

// reachGoal says how each of some nodes reaches the goal.
func (g *Graph) reachGoal(names []string) []Certainty {
	nodes, wanted := make([]vertex, len(names)), map[vertex]bool{}
	for i, name := range names {
		v, ok := g.index[key{kind: isNode, name: name}]
		if !ok {
			v = none
		}
		nodes[i], wanted[v] = v, true
	}
	groups := sync.OnceValue(g.groups)
	ignore := func(*reverse, vertex) {}
	certain := g.markNodes(false, groups, wanted, ignore)
	for _, v := range nodes {
		if v != none && certain.marked[v] {
			delete(wanted, v)
		}
	}
	possible := g.markNodes(true, groups, wanted, ignore)
	reach := make([]Certainty, len(names))
	for i, v := range nodes {
		switch {
		case v == none:
		case certain.marked[v]:
			reach[i] = Certain
		case possible.marked[v]:
			reach[i] = Possible
		}
	}
	return reach
}
