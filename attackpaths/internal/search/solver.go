package search

import "slices"

// Solver finds everything that is reached from some vertices, and the shortest way to each: forward
// chaining in the order of cost, after Knuth's generalization of Dijkstra's algorithm. The cost of a
// vertex is how many steps its derivation has, each counted once. Where several vertices are needed together, those
// that cost as much in other ways are derived from what the others need; the derivation may still have a step more
// than the shortest, because the shortest one of each is taken. A solver is used again for one start
// after the other, and not concurrently.
type Solver struct {
	// Stop, if set, ends a search after a vertex.
	Stop func(Vertex) bool

	graph *Graph
	// possible also takes edges that depend on something.
	possible bool
	// base is the round that found what is reached before a search begins, or noBase. There are no paths and costs with
	// a base. baseOpen is how many vertices each join waits for beyond it.
	base     int32
	baseOpen []int32

	round int32
	seen  []int32 // the round in which a vertex was reached
	cost  []int32
	via   []Via
	// open counts the vertices that a join still waits for.
	joinRound []int32
	open      []int32
	// queue has the vertices by cost. A vertex may be in it more than once.
	queue [][]queued
	// reached are the vertices beyond the base, in the order in which they were found.
	reached []Vertex
}

type queued struct {
	vertex Vertex
	via    Via
}

// Via is how a vertex was reached.
type Via struct {
	From Vertex // None for the start and for joins
	Join int32  // the place of a join, or -1
	Edge Edge
}

const noBase = -1

// Solver returns one that is not in use. It is to be released. With possible it also takes edges that depend on something.
func (g *Graph) Solver(possible bool) *Solver {
	s, ok := g.solvers.Get().(*Solver)
	if !ok {
		vertices, joins := len(g.Out), len(g.Joins)
		s = &Solver{
			graph: g, base: noBase, seen: make([]int32, vertices), cost: make([]int32, vertices), via: make([]Via, vertices),
			joinRound: make([]int32, joins), open: make([]int32, joins),
		}
	}
	s.possible = possible
	return s
}

// Keep makes what was reached last the base of further searches.
func (s *Solver) Keep() {
	s.baseOpen = make([]int32, len(s.graph.Joins))
	for i := range s.graph.Joins {
		s.baseOpen[i] = int32(len(s.graph.Joins[i].From))
		if s.joinRound[i] == s.round {
			s.baseOpen[i] = s.open[i]
		}
	}
	s.base = s.round
}

// Release lets others use a solver.
func (s *Solver) Release() {
	s.Stop, s.base = nil, noBase
	s.graph.solvers.Put(s)
}

// SolveUntil is Solve that ends when a vertex is reached.
func (s *Solver) SolveUntil(start, end Vertex) {
	s.Stop = func(v Vertex) bool { return v == end }
	s.Solve(start)
	s.Stop = nil
}

// Solve finds everything that is reached from one of some vertices.
func (s *Solver) Solve(starts ...Vertex) {
	s.round++
	s.reached = s.reached[:0]
	s.Add(starts...)
}

// Add finds what is reached from further vertices.
func (s *Solver) Add(starts ...Vertex) {
	for i := range s.queue {
		s.queue[i] = s.queue[i][:0]
	}
	for _, start := range starts {
		s.push(0, start, Via{From: None, Join: -1})
	}
	for cost := 0; cost < len(s.queue); cost++ {
		for i := 0; i < len(s.queue[cost]); i++ {
			q := &s.queue[cost][i]
			v := q.vertex
			if s.Has(v) {
				continue
			}
			s.seen[v], s.cost[v], s.via[v] = s.round, int32(cost), q.via
			s.reached = append(s.reached, v)
			if s.Stop != nil && s.Stop(v) {
				return
			}
			s.follow(v, int32(cost))
		}
	}
}

func (s *Solver) push(cost int32, v Vertex, how Via) {
	for int(cost) >= len(s.queue) {
		s.queue = append(s.queue, nil)
	}
	s.queue[cost] = append(s.queue[cost], queued{v, how})
}

// follow takes the edges and joins of a vertex.
func (s *Solver) follow(v Vertex, cost int32) {
	for _, e := range s.graph.Out[v] {
		if s.takes(e) {
			s.push(cost+e.steps(), e.To, Via{From: v, Join: -1, Edge: e})
		}
	}
	for _, j := range s.graph.JoinsOf[v] {
		s.arrive(j, cost)
	}
}

// arrive notes that one of the vertices of a join is reached.
func (s *Solver) arrive(place, cost int32) {
	j := &s.graph.Joins[place]
	if s.joinRound[place] != s.round {
		s.joinRound[place], s.open[place] = s.round, int32(len(j.From))
		if s.base != noBase {
			s.open[place] = s.baseOpen[place]
		}
	}
	s.open[place]--
	if s.open[place] == 0 && s.takes(j.Edge) {
		s.push(s.stepsOf(j.From, cost)+j.steps(), j.To, Via{From: None, Join: place, Edge: j.Edge})
	}
}

// takes reports whether an edge may be used and leads to something new.
func (s *Solver) takes(e Edge) bool { return (s.possible || e.DependsOn == 0) && !s.Has(e.To) }

// Has reports whether a vertex was reached.
func (s *Solver) Has(v Vertex) bool { return s.seen[v] == s.round || s.seen[v] == s.base }

// Reached lists the vertices beyond the base, in the order in which they were found. The next search changes the list.
func (s *Solver) Reached() []Vertex { return s.reached }

// Via says how a vertex was reached, and Cost in how many steps. Both are known only of searches without a base.
func (s *Solver) Via(v Vertex) Via { return s.via[v] }

// Cost is how many steps lead to a vertex.
func (s *Solver) Cost(v Vertex) int32 { return s.cost[v] }

// stepsOf counts the steps of the derivations of vertices, those that they share once. The last one has the highest
// cost.
func (s *Solver) stepsOf(all []Vertex, last int32) int32 {
	parts := 0
	for _, v := range all {
		if s.cost[v] > 0 {
			parts++
		}
	}
	if s.base != noBase || parts < 2 {
		return last
	}
	steps := s.countAll(all)
	if steps > last && s.share(all) {
		steps = s.countAll(all)
	}
	return steps
}

func (s *Solver) countAll(all []Vertex) int32 {
	steps := int32(0)
	for _, v := range s.Derivation(all...) {
		steps += s.via[v].Edge.steps()
	}
	return steps
}

// share derives vertices from what the derivations of the others have, where that costs as much, and reports
// whether it could.
func (s *Solver) share(all []Vertex) bool {
	shared := false
	for _, v := range all {
		for _, other := range all {
			if other != v && s.deriveFrom(s.Derivation(other), v) {
				shared = true
			}
		}
	}
	return shared
}

// deriveFrom derives a vertex from one of others without a step, where that costs as much.
func (s *Solver) deriveFrom(others []Vertex, wanted Vertex) bool {
	how := map[Vertex]Via{}
	var queue []Vertex
	for _, v := range others {
		if s.cost[v] == s.cost[wanted] {
			how[v], queue = Via{From: None}, append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		if v == wanted {
			for ; how[v].From != None; v = how[v].From {
				s.via[v] = how[v]
			}
			return true
		}
		for _, e := range s.graph.Out[v] {
			_, known := how[e.To]
			if e.Row == 0 && !known && (s.possible || e.DependsOn == 0) && s.Has(e.To) && s.cost[e.To] == s.cost[wanted] {
				how[e.To], queue = Via{From: v, Join: -1, Edge: e}, append(queue, e.To)
			}
		}
	}
	return false
}

// Derivation lists the vertices that some vertices were reached through, each after those that it
// needs, and the last of them last.
func (s *Solver) Derivation(ends ...Vertex) []Vertex {
	var order []Vertex
	done := map[Vertex]bool{}
	var visit func(Vertex)
	visit = func(v Vertex) {
		if done[v] {
			return
		}
		done[v] = true
		for _, from := range s.graph.Parts(s.via[v]) {
			visit(from)
		}
		order = append(order, v)
	}
	for _, v := range ends {
		visit(v)
	}
	return slices.Clip(order)
}
