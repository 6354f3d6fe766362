package attackpaths

import (
	"fmt"
	"slices"
)

// stepPlace is where a graph has a step.
type stepPlace struct {
	row row
	// from makes the step, with whatever else is reached from the start, and to is what the step leads to.
	start, from, to vertex
}

// in finds a vertex in another graph of the cluster.
func (g *Graph) in(other *Graph, v vertex) (vertex, bool) {
	k := g.keys[v]
	if k.of != 0 {
		of, ok := g.in(other, k.of)
		if !ok {
			return none, false
		}
		k.of = of
	}
	w, ok := other.index[k]
	return w, ok
}

// reachedVertex is a vertex that a search for a step has reached. Row is the technique of a step that has led there, and to no
// holding yet; zero if none has. Own is false for what only another holding reaches.
type reachedVertex struct {
	vertex
	row row
	own bool
}

// use is an edge or join of a derivation, with what it leads from.
type use struct {
	edge
	from []reachedVertex
}

// stepSearch finds whether a holding makes one step by any right. It follows everything that the holding can do
// until that leads to another holding.
type stepSearch struct {
	*Graph
	row row
	// to is what the step leads to, or target if that is a holding.
	to        vertex
	target    Holding
	isHolding bool
	// others finds all that is reached from the start.
	others  *solver
	sources map[reachedVertex]use
	// first is how a vertex was reached first.
	first map[vertex]reachedVertex
	queue []reachedVertex
	// end is how the step is made, and uses are the edges of its derivation, the last one first.
	end  *use
	uses []use
}

// findStep finds how a step of the graph is made in another graph of the cluster, by any right; nil if it is not.
// Whatever the state does not show may be so.
func (g *Graph) findStep(other *Graph, at stepPlace) *stepSearch {
	s := &stepSearch{
		Graph: other, row: at.row, others: other.solver(true), sources: map[reachedVertex]use{}, first: map[vertex]reachedVertex{},
	}
	defer s.others.Release()
	s.target, s.isHolding = g.keys[at.to].holding()
	if to, ok := g.in(other, at.to); ok {
		s.to = to
	} else if !s.isHolding {
		return nil
	}
	s.begin(g, at)
	for ; s.end == nil && len(s.queue) > 0; s.queue = s.queue[1:] {
		d := s.queue[0]
		for _, e := range s.edges.Out[d.vertex] {
			s.take(use{e, []reachedVertex{d}})
		}
		for _, place := range s.edges.JoinsOf[d.vertex] {
			if from, ok := s.parts(&s.edges.Joins[place], d); ok {
				s.take(use{s.edges.Joins[place].Edge, from})
			}
		}
	}
	if s.end == nil {
		return nil
	}
	s.uses = s.usesOf(*s.end, map[reachedVertex]bool{})
	return s
}

// begin adds what makes the step: each vertex of the holding that is reached, or that has it in the graph, or else
// each there is.
func (s *stepSearch) begin(g *Graph, at stepPlace) {
	if start, ok := g.in(s.Graph, at.start); ok {
		s.others.Solve(start)
	} else {
		s.others.Solve()
	}
	if v, ok := g.in(s.Graph, at.from); ok {
		s.add(reachedVertex{v, 0, true}, use{})
	}
	from, _ := g.keys[at.from].holding()
	add := func(v vertex) {
		if h, ok := s.keys[v].holding(); ok && h == from {
			s.add(reachedVertex{v, 0, true}, use{})
		}
	}
	for _, v := range s.others.Reached() {
		add(v)
	}
	if len(s.queue) == 0 {
		for v := range s.keys {
			add(vertex(v))
		}
	}
}

func (s *stepSearch) add(d reachedVertex, how use) {
	if _, known := s.sources[d]; known {
		return
	}
	s.sources[d] = how
	if _, known := s.first[d.vertex]; !known {
		s.first[d.vertex] = d
	}
	s.queue = append(s.queue, d)
}

// parts are what a join leads from, if all of it is reached.
func (s *stepSearch) parts(j *join, d reachedVertex) (from []reachedVertex, ok bool) {
	for _, v := range j.From {
		part, reached := s.first[v]
		if v == d.vertex {
			part, reached = d, true
		}
		if !reached && !s.others.Has(v) {
			return nil, false
		}
		part.vertex = v // also of what only others reach
		from = append(from, part)
	}
	return from, true
}

// take follows an edge. Of what a join needs together, the identity makes the step. A step ends with the first holding
// that it leads to.
func (s *stepSearch) take(how use) {
	d := reachedVertex{vertex: how.To, row: how.Row}
	acts := slices.ContainsFunc(how.from, func(d reachedVertex) bool { return s.keys[d.vertex].actor() })
	for _, from := range how.from {
		d.own = d.own || from.own && (!acts || s.keys[from.vertex].actor())
		if how.Row == 0 {
			d.row = max(d.row, from.row)
		}
	}
	h, isHolding := s.keys[d.vertex].holding()
	if d.own && d.row == s.row && s.end == nil && (isHolding && s.isHolding && h == s.target || !s.isHolding && d.vertex == s.to) {
		s.end = &how
	}
	if !isHolding || d.row == 0 {
		s.add(d, how)
	}
}

// usesOf lists the edges of a derivation, the last one first.
func (s *stepSearch) usesOf(u use, seen map[reachedVertex]bool) []use {
	all := []use{u}
	for _, d := range u.from {
		if before := s.before(d); len(before.from) > 0 && !seen[d] {
			all = append(all, s.usesOf(before, seen)...)
		}
		seen[d] = true
	}
	return all
}

// before is the edge that leads to a vertex, from nothing for a start and for other holdings.
func (s *stepSearch) before(d reachedVertex) use {
	how := s.sources[d]
	if _, isHolding := s.keys[d.vertex].holding(); len(how.from) > 0 || d.own || isHolding {
		return how
	}
	how.edge = s.others.Via(d.vertex).Edge
	for _, from := range s.others.edges.Parts(s.others.Via(d.vertex)) {
		how.from = append(how.from, reachedVertex{vertex: from})
	}
	return how
}

// text identifies a use by the vertices of a graph of the cluster.
func (s *stepSearch) text(g *Graph, u *use) string {
	to, _ := s.in(g, u.To)
	all := []vertex{to}
	for _, from := range u.from {
		v, _ := s.in(g, from.vertex)
		all = append(all, v)
	}
	slices.Sort(all)
	return fmt.Sprint(u.Row, all)
}
