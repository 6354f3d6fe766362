package attackpaths

import "slices"

// solver finds everything that is reached from some vertices, and the shortest way to each: forward
// chaining in the order of cost, after Knuth's generalization of Dijkstra's algorithm. The cost of a
// vertex is how many steps its derivation has, each counted once. Where several vertices are needed together, those
// that cost as much in other ways are derived from what the others need; the derivation may still have a step more
// than the shortest, because the shortest one of each is taken. A solver is used again for one start
// after the other, and not concurrently. What cluster-admin owns is not followed.
type solver struct {
	*Graph
	// possible also takes steps that depend on what the state does not show.
	possible bool
	// stop, if set, ends a search after a vertex.
	stop func(vertex) bool
	// base is the round that found what is reached before a search begins, or noBase. There are no paths and costs with
	// a base. baseOpen is how many vertices each join waits for beyond it.
	base     int32
	baseOpen []int32

	round int32
	seen  []int32 // the round in which a vertex was reached
	cost  []int32
	via   []via
	// open counts the vertices that a join still waits for.
	joinRound []int32
	open      []int32
	// queue has the vertices by cost. A vertex may be in it more than once.
	queue [][]queued
	// reached are the vertices beyond the base, in the order in which they were found.
	reached []vertex
	// trails are the derivations of vertices through which others are reached.
	trails map[vertex]trail
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

const noBase = -1

// solver returns one that is not in use. It is to be released.
func (g *Graph) solver(possible bool) *solver {
	s, ok := g.solvers.Get().(*solver)
	if !ok {
		s = &solver{
			Graph: g, trails: map[vertex]trail{}, base: noBase,
			seen: make([]int32, len(g.keys)), cost: make([]int32, len(g.keys)), via: make([]via, len(g.keys)),
			joinRound: make([]int32, len(g.joins)), open: make([]int32, len(g.joins)),
		}
	}
	s.possible = possible
	return s
}

// keep makes what was reached last the base of further searches.
func (s *solver) keep() {
	s.baseOpen = make([]int32, len(s.joins))
	for i := range s.joins {
		s.baseOpen[i] = int32(len(s.joins[i].from))
		if s.joinRound[i] == s.round {
			s.baseOpen[i] = s.open[i]
		}
	}
	s.base = s.round
}

// release lets others use a solver.
func (g *Graph) release(s *solver) {
	clear(s.trails)
	s.stop, s.base = nil, noBase
	g.solvers.Put(s)
}

// solveUntil is solve that ends when a vertex is reached.
func (s *solver) solveUntil(start, end vertex) {
	s.stop = func(v vertex) bool { return v == end }
	s.solve(start)
	s.stop = nil
}

// solve finds everything that is reached from one of some vertices.
func (s *solver) solve(starts ...vertex) {
	s.round++
	s.reached = s.reached[:0]
	clear(s.trails)
	s.add(starts...)
}

// add finds what is reached from further vertices.
func (s *solver) add(starts ...vertex) {
	for i := range s.queue {
		s.queue[i] = s.queue[i][:0]
	}
	for _, start := range starts {
		s.push(0, start, via{from: none, join: -1})
	}
	for cost := 0; cost < len(s.queue); cost++ {
		for i := 0; i < len(s.queue[cost]); i++ {
			q := &s.queue[cost][i]
			v := q.vertex
			if s.has(v) {
				continue
			}
			s.seen[v], s.cost[v], s.via[v] = s.round, int32(cost), q.via
			s.reached = append(s.reached, v)
			if s.stop != nil && s.stop(v) {
				return
			}
			s.follow(v, int32(cost))
		}
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
	if s.joinRound[place] != s.round {
		s.joinRound[place], s.open[place] = s.round, int32(len(j.from))
		if s.base != noBase {
			s.open[place] = s.baseOpen[place]
		}
	}
	s.open[place]--
	if s.open[place] == 0 && s.takes(j.edge) {
		s.push(s.stepsOf(j.from, cost)+j.cost(), j.to, via{from: none, join: place, edge: j.edge})
	}
}

// takes reports whether an edge may be used and leads to something new.
func (s *solver) takes(e edge) bool { return (s.possible || e.dependsOn == 0) && !s.has(e.to) }

func (e edge) cost() int32 {
	if e.row == 0 {
		return 0
	}
	return 1
}

func (s *solver) has(v vertex) bool { return s.seen[v] == s.round || s.seen[v] == s.base }

// stepsOf counts the steps of the derivations of vertices, those that they share once. The last one has the highest
// cost.
func (s *solver) stepsOf(all []vertex, last int32) int32 {
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

func (s *solver) countAll(all []vertex) int32 {
	steps := int32(0)
	for _, v := range s.derivation(all...) {
		steps += s.via[v].edge.cost()
	}
	return steps
}

// share derives vertices from what the derivations of the others have, where that costs as much, and reports
// whether it could.
func (s *solver) share(all []vertex) bool {
	shared := false
	for _, v := range all {
		for _, other := range all {
			if other != v && s.deriveFrom(s.derivation(other), v) {
				shared = true
			}
		}
	}
	return shared
}

// deriveFrom derives a vertex from one of others without a step, where that costs as much.
func (s *solver) deriveFrom(others []vertex, wanted vertex) bool {
	how := map[vertex]via{}
	var queue []vertex
	for _, v := range others {
		if s.cost[v] == s.cost[wanted] {
			how[v], queue = via{from: none}, append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		if v == wanted {
			for ; how[v].from != none; v = how[v].from {
				s.via[v] = how[v]
			}
			return true
		}
		for _, e := range s.out[v] {
			_, known := how[e.to]
			if e.row == 0 && !known && (s.possible || e.dependsOn == 0) && s.has(e.to) && s.cost[e.to] == s.cost[wanted] {
				how[e.to], queue = via{from: v, join: -1, edge: e}, append(queue, e.to)
			}
		}
	}
	return false
}

// derivation lists the vertices that some vertices were reached through, each after those that it
// needs, and the last of them last.
func (s *solver) derivation(ends ...vertex) []vertex {
	var order []vertex
	done := map[vertex]bool{}
	var visit func(vertex)
	visit = func(v vertex) {
		if done[v] {
			return
		}
		done[v] = true
		for _, from := range s.parts(s.via[v]) {
			visit(from)
		}
		order = append(order, v)
	}
	for _, v := range ends {
		visit(v)
	}
	return slices.Clip(order)
}

// parts are the vertices that a step needs; none for a start.
func (s *solver) parts(how via) []vertex {
	switch {
	case how.join >= 0:
		return s.joins[how.join].from
	case how.from == none:
		return nil
	}
	return []vertex{how.from}
}
