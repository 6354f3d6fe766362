package attackpaths

import (
	"math"
	"slices"
)

// solver finds what is reached from a start, and the shortest way to each vertex: a forward
// chaining in the order of cost, after Knuth's generalization of Dijkstra's algorithm. The
// cost of a vertex is the number of steps of its derivation. A solver is used again for one
// start after the other, and not concurrently.
type solver struct {
	*Graph
	// possible also takes steps that depend on what the state does not show.
	possible bool

	round int32
	seen  []int32 // the round in which a vertex was reached
	cost  []int32
	via   []via
	// open counts the vertices that a join still waits for, and sum adds up their cost.
	joinRound []int32
	open      []int32
	sum       []int32
	// queue has the vertices by cost. A vertex may be in it more than once.
	queue   [][]queued
	reached []vertex
	// trails are the derivations of vertices through which others are reached.
	trails map[vertex]trail
	// stop, if set, ends a search after a vertex.
	stop func(vertex) bool
}

type queued struct {
	vertex vertex
	via    via
}

// via is how a vertex was reached.
type via struct {
	from vertex // none for the start and for joins
	join int32  // the place of a join, or -1
	edge edge
}

// solver returns one that is not in use. It is to be released.
func (g *Graph) solver(possible bool) *solver {
	s, ok := g.solvers.Get().(*solver)
	if !ok {
		s = g.newSolver()
	}
	s.possible = possible
	return s
}

// release lets others use a solver.
func (g *Graph) release(s *solver) {
	clear(s.trails)
	s.stop = nil
	g.solvers.Put(s)
}

func (g *Graph) newSolver() *solver {
	return &solver{
		Graph: g, trails: map[vertex]trail{},
		seen: make([]int32, len(g.keys)), cost: make([]int32, len(g.keys)), via: make([]via, len(g.keys)),
		joinRound: make([]int32, len(g.joins)), open: make([]int32, len(g.joins)), sum: make([]int32, len(g.joins)),
	}
}

// solve finds everything that is reached from one of some vertices. What cluster-admin owns is not
// followed.
func (s *solver) solve(starts ...vertex) { s.search(none, starts) }

// solveUntil is solve that ends when a vertex is reached.
func (s *solver) solveUntil(start, end vertex) { s.search(end, []vertex{start}) }

func (s *solver) search(end vertex, starts []vertex) {
	s.round++
	s.reached = s.reached[:0]
	clear(s.trails)
	for i := range s.queue {
		s.queue[i] = s.queue[i][:0]
	}
	for _, start := range starts {
		s.push(0, start, via{from: none, join: -1})
	}
	for cost := 0; cost < len(s.queue); cost++ {
		for i := 0; i < len(s.queue[cost]); i++ {
			q := s.queue[cost][i]
			if s.seen[q.vertex] == s.round {
				continue
			}
			s.seen[q.vertex], s.cost[q.vertex], s.via[q.vertex] = s.round, int32(cost), q.via
			s.reached = append(s.reached, q.vertex)
			if q.vertex == end || s.stop != nil && s.stop(q.vertex) {
				return
			}
			s.follow(q.vertex, int32(cost))
		}
		s.queue[cost] = s.queue[cost][:0]
	}
}

func (s *solver) push(cost int32, v vertex, how via) {
	for int(cost) >= len(s.queue) {
		s.queue = append(s.queue, nil)
	}
	s.queue[cost] = append(s.queue[cost], queued{v, how})
}

// follow takes the edges and joins of a vertex.
func (s *solver) follow(v vertex, cost int32) {
	for _, e := range s.out[v] {
		if s.takes(e) {
			s.push(cost+e.cost(), e.to, via{from: v, join: -1, edge: e})
		}
	}
	for _, j := range s.joinsOf[v] {
		s.arrive(j, cost)
	}
}

// arrive notes that one of the vertices of a join is reached.
func (s *solver) arrive(place, cost int32) {
	j := &s.joins[place]
	if !s.takes(j.edge) {
		return
	}
	if s.joinRound[place] != s.round {
		s.joinRound[place], s.open[place], s.sum[place] = s.round, int32(len(j.from)), 0
	}
	s.open[place]--
	s.sum[place] = min(s.sum[place]+cost, math.MaxInt16)
	if s.open[place] == 0 {
		s.push(s.sum[place]+j.cost(), j.to, via{from: none, join: place, edge: j.edge})
	}
}

// takes reports whether an edge may be used and leads to something new.
func (s *solver) takes(e edge) bool {
	return s.seen[e.to] != s.round && (s.possible || e.dependsOn == 0)
}

func (e edge) cost() int32 {
	if e.row == 0 {
		return 0
	}
	return 1
}

func (s *solver) has(v vertex) bool { return s.seen[v] == s.round }

// derivation lists the vertices that a vertex was reached through, each after those that it
// needs, and itself last.
func (s *solver) derivation(v vertex) []vertex {
	var order []vertex
	done := map[vertex]bool{}
	var visit func(vertex)
	visit = func(v vertex) {
		if done[v] {
			return
		}
		done[v] = true
		how := s.via[v]
		switch {
		case how.join >= 0:
			for _, from := range s.joins[how.join].from {
				visit(from)
			}
		case how.from != none:
			visit(how.from)
		}
		order = append(order, v)
	}
	visit(v)
	return slices.Clip(order)
}
