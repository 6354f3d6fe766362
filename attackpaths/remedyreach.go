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

// use is an edge or join of a derivation, with what it leads from.
type use struct {
	edge
	from []vertex
}

// reachedVertex is a vertex that a search for a step has reached. Row is the technique of a step that has led there, and to no
// holding yet; zero if none has. Own is false for what only another holding reaches.
type reachedVertex struct {
	vertex
	row row
	own bool
}

// source is how a vertex was reached.
type source struct {
	edge edge
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
	sources map[reachedVertex]source
	// first is how a vertex was reached first.
	first map[vertex]reachedVertex
	queue []reachedVertex
	// end is how the step is made.
	end *source
}

// findStep finds how a step of the graph is made in another graph of the cluster, by any right; nil if it is not.
// Whatever the state does not show may be so. The search is to be released.
func (g *Graph) findStep(other *Graph, at stepPlace) *stepSearch {
	s := &stepSearch{
		Graph: other, row: at.row, others: other.solver(true), sources: map[reachedVertex]source{}, first: map[vertex]reachedVertex{},
	}
	var ok bool
	if s.target, s.isHolding = g.keys[at.to].holding(); !s.isHolding {
		if s.to, ok = g.in(other, at.to); !ok {
			s.release()
			return nil
		}
	}
	s.begin(g, at)
	for ; s.end == nil && len(s.queue) > 0; s.queue = s.queue[1:] {
		d := s.queue[0]
		for _, e := range s.out[d.vertex] {
			s.take(source{e, []reachedVertex{d}})
		}
		for _, place := range s.joinsOf[d.vertex] {
			if from, ok := s.parts(&s.joins[place], d); ok {
				s.take(source{s.joins[place].edge, from})
			}
		}
	}
	if s.end == nil {
		s.release()
		return nil
	}
	return s
}

// begin adds what makes the step: each vertex of the holding that is reached, or that has it in the graph, or else
// each there is.
func (s *stepSearch) begin(g *Graph, at stepPlace) {
	if start, ok := g.in(s.Graph, at.start); ok {
		s.others.solve(start)
	} else {
		s.others.solve()
	}
	from, _ := g.keys[at.from].holding()
	is := func(v vertex) bool {
		h, ok := s.keys[v].holding()
		return ok && h == from
	}
	if v, ok := g.in(s.Graph, at.from); ok {
		s.add(reachedVertex{v, 0, true}, source{})
	}
	for _, v := range s.others.reached {
		if is(v) {
			s.add(reachedVertex{v, 0, true}, source{})
		}
	}
	if len(s.queue) > 0 {
		return
	}
	for v := range s.keys {
		if is(vertex(v)) {
			s.add(reachedVertex{vertex(v), 0, true}, source{})
		}
	}
}

func (s *stepSearch) release() { s.Graph.release(s.others) }

func (s *stepSearch) add(d reachedVertex, how source) {
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
	for _, v := range j.from {
		part, reached := s.first[v]
		switch {
		case v == d.vertex:
			part = d
		case !reached && !s.others.has(v):
			return nil, false
		case !reached:
			part = reachedVertex{vertex: v}
		}
		from = append(from, part)
	}
	return from, true
}

// take follows an edge. Of what a join needs together, the identity makes the step. A step ends with the first holding
// that it leads to.
func (s *stepSearch) take(how source) {
	d := reachedVertex{vertex: how.edge.to, row: how.edge.row}
	acts := slices.ContainsFunc(how.from, func(d reachedVertex) bool { return s.keys[d.vertex].actor() })
	for _, from := range how.from {
		d.own = d.own || from.own && (!acts || s.keys[from.vertex].actor())
		if how.edge.row == 0 {
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

// uses lists the edges of the derivation, the last one first.
func (s *stepSearch) uses() []use {
	var all []use
	seen := map[reachedVertex]bool{}
	var visit func(how source)
	visit = func(how source) {
		u := use{edge: how.edge}
		for _, d := range how.from {
			u.from = append(u.from, d.vertex)
		}
		all = append(all, u)
		for _, d := range how.from {
			switch before := s.sources[d]; {
			case seen[d]:
			case len(before.from) > 0:
				visit(before)
			case !d.own:
				all = append(all, s.usesOfOthers(d.vertex)...)
			}
			seen[d] = true
		}
	}
	visit(*s.end)
	return all
}

// usesOfOthers lists the edges by which another holding has a vertex.
func (s *stepSearch) usesOfOthers(v vertex) []use {
	how := s.others.via[v]
	if _, isHolding := s.keys[v].holding(); isHolding || how.join < 0 && how.from == none {
		return nil
	}
	u := use{edge: how.edge, from: s.others.parts(how)}
	all := []use{u}
	for _, from := range u.from {
		all = append(all, s.usesOfOthers(from)...)
	}
	return all
}

// text identifies a use in all graphs of the cluster.
func (s *stepSearch) text(u *use) string {
	var parts []string
	for _, v := range append(slices.Clone(u.from), u.to) {
		text := ""
		for {
			k := s.keys[v]
			v, k.of = k.of, 0
			text += fmt.Sprint(k)
			if v == 0 {
				break
			}
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return fmt.Sprint(u.row, parts)
}
