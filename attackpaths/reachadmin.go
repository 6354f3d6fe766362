package attackpaths

import (
	"slices"
	"sync"
)

// reverseEdges are the edges of a graph backwards: those to vertex v are sources[first[v]:first[v+1]].
type reverseEdges struct {
	first   []int32
	sources []vertex
}

// reverse turns edges around, without joins.
func (g *Graph) reverse(possible bool) *reverseEdges {
	r := &reverseEdges{first: make([]int32, len(g.keys)+1)}
	each := func(do func(from, to vertex)) {
		for v := range g.out {
			for i := range g.out[v] {
				if e := &g.out[v][i]; possible || e.dependsOn == 0 {
					do(vertex(v), e.to)
				}
			}
		}
	}
	each(func(_, to vertex) { r.first[to+1]++ })
	for v := range g.keys {
		r.first[v+1] += r.first[v]
	}
	r.sources = make([]vertex, r.first[len(g.keys)])
	next := slices.Clone(r.first)
	each(func(from, to vertex) {
		r.sources[next[to]] = from
		next[to]++
	})
	return r
}

// marks are the vertices from which cluster-admin is reached without any other, as far as that is
// known.
type marks struct {
	*Graph
	reverse *reverseEdges
	// next is the vertex after a marked one, and none for cluster-admin and for those that are
	// marked by themselves.
	next   []vertex
	marked []bool
	// order has the marked vertices in the order in which they were.
	order []vertex
}

// newMarks marks what reaches cluster-admin without joins.
func (g *Graph) newMarks(possible bool) *marks {
	m := &marks{Graph: g, reverse: g.reverse(possible), next: make([]vertex, len(g.keys)), marked: make([]bool, len(g.keys))}
	m.mark(g.index[key{kind: isClusterAdmin}])
	return m
}

// mark marks a vertex and what leads to it without joins, the nearest first.
func (m *marks) mark(v vertex) {
	if m.marked[v] {
		return
	}
	m.marked[v], m.next[v] = true, none
	m.order = append(m.order, v)
	for i := len(m.order) - 1; i < len(m.order); i++ {
		to := m.order[i]
		for _, from := range m.reverse.sources[m.reverse.first[to]:m.reverse.first[to+1]] {
			if !m.marked[from] {
				m.marked[from], m.next[from] = true, to
				m.order = append(m.order, from)
			}
		}
	}
}

// all reports whether all vertices of a set are marked.
func (m *marks) all(set map[vertex]bool) bool {
	for v := range set {
		if v != none && !m.marked[v] {
			return false
		}
	}
	return true
}

// meets runs until a marked vertex is reached, and reports whether one is.
func (c *closure) meets(m *marks, start vertex) bool {
	c.round++
	c.reached = c.reached[:0]
	c.add(start)
	for i := 0; i < len(c.reached); i++ {
		v := c.reached[i]
		if m.marked[v] {
			return true
		}
		for _, e := range c.out[v] {
			if c.possible || e.dependsOn == 0 {
				c.add(e.to)
			}
		}
		for _, place := range c.joinsOf[v] {
			c.arrive(place)
		}
	}
	return false
}

// markNodes marks the nodes that reach cluster-admin, of those that are wanted. When one does that
// only with joins, found is called for it and may mark what it does so through.
func (g *Graph) markNodes(possible bool, groups func() []group, wanted map[vertex]bool, found func(m *marks, node vertex)) *marks {
	s := &nodeSearch{marks: g.newMarks(possible), refused: map[vertex]bool{}}
	if s.all(wanted) {
		return s.marks
	}
	for _, group := range groups() {
		s.base, s.checked = nil, 0
		for _, node := range group.nodes {
			if !wanted[node] || s.marked[node] || s.refused[node] {
				continue
			}
			if s.base == nil {
				s.begin(group, possible)
			}
			if s.baseMeets() || s.base.meets(s.marks, node) {
				found(s.marks, node)
				s.mark(node)
			} else {
				s.refuse()
			}
		}
	}
	return s.marks
}

// nodeSearch finds the nodes of one group after the other that reach cluster-admin.
type nodeSearch struct {
	*marks
	base *closure
	// baseNodes are the nodes in the base, until they are refused.
	baseNodes []vertex
	// checked is how many marked vertices are known not to be in the base, and met is true if one is.
	checked int
	met     bool
	// refused are the nodes that do not reach cluster-admin.
	refused map[vertex]bool
}

func (s *nodeSearch) begin(nodes group, possible bool) {
	common := nodes.common
	if !possible {
		common = s.certainly(nodes)
	}
	s.base, s.met = s.newClosure(possible, common), false
	s.baseNodes = slices.DeleteFunc(slices.Clone(s.base.reached), func(v vertex) bool { return s.keys[v].kind != isNode })
}

// baseMeets reports whether a vertex of the base is marked.
func (s *nodeSearch) baseMeets() bool {
	for ; !s.met && s.checked < len(s.order); s.checked++ {
		s.met = s.base.base[s.order[s.checked]]
	}
	return s.met
}

// refuse notes that the node which was searched from, and those that it reaches, do not reach
// cluster-admin.
func (s *nodeSearch) refuse() {
	for _, v := range s.base.reached {
		if s.keys[v].kind == isNode {
			s.refused[v] = true
		}
	}
	for _, v := range s.baseNodes {
		s.refused[v] = true
	}
	s.baseNodes = nil
}

// reachAdmin says how each of some nodes reaches cluster-admin.
func (g *Graph) reachAdmin(names []string) []Certainty {
	nodes, wanted := make([]vertex, len(names)), map[vertex]bool{}
	for i, name := range names {
		v, ok := g.index[key{kind: isNode, name: name}]
		if !ok {
			v = none
		}
		nodes[i], wanted[v] = v, true
	}
	groups := sync.OnceValue(g.groups)
	ignore := func(*marks, vertex) {}
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
