package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
)

const (
	step = 1 // the row of an edge that is a step
	free = 0
)

// graphOf makes a graph with so many vertices.
func graphOf(vertices int, edges map[search.Vertex][]search.Edge, joins ...search.Join) *search.Graph {
	g := search.New(vertices)
	for range vertices {
		g.AddVertex()
	}
	for from := range search.Vertex(vertices) {
		for _, e := range edges[from] {
			g.AddEdge(from, e)
		}
	}
	for _, j := range joins {
		g.AddJoin(j.Edge, j.From)
	}
	return g
}

func TestSolve(t *testing.T) {
	type (
		edges    = map[search.Vertex][]search.Edge
		vertices = []search.Vertex
	)
	to := func(v search.Vertex, row search.Row) search.Edge { return search.Edge{To: v, Row: row} }
	maybe := search.Edge{To: 1, Row: step, DependsOn: 1}
	for rule, tc := range map[string]struct {
		size     int
		edges    edges
		joins    []search.Join
		possible bool
		end      search.Vertex
		// cost is -1 where the end is not reached, and path is the derivation of the end.
		cost int32
		path vertices
	}{
		"edges are followed":                {3, edges{0: {to(1, step)}, 1: {to(2, step)}}, nil, false, 2, 2, vertices{0, 1, 2}},
		"nothing leads back":                {3, edges{1: {to(0, step)}}, nil, false, 1, -1, nil},
		"an edge without a step costs none": {3, edges{0: {to(1, free)}, 1: {to(2, step)}}, nil, false, 2, 1, vertices{0, 1, 2}},
		"the shortest way counts": {
			4, edges{0: {to(1, step), to(3, step)}, 1: {to(2, step)}, 2: {to(3, step)}}, nil, false, 3, 1, vertices{0, 3},
		},
		"a condition is not certain":      {2, edges{0: {maybe}}, nil, false, 1, -1, nil},
		"a condition is possible":         {2, edges{0: {maybe}}, nil, true, 1, 1, vertices{0, 1}},
		"a join needs all its parts":      {4, edges{0: {to(1, step)}}, []search.Join{{vertices{1, 2}, to(3, step)}}, false, 3, -1, nil},
		"a join of one vertex is an edge": {2, nil, []search.Join{{vertices{0}, to(1, step)}}, false, 1, 1, vertices{0, 1}},
		"a join follows the last of its parts": {
			4, edges{0: {to(1, step), to(2, step)}}, []search.Join{{vertices{1, 2}, to(3, free)}}, false, 3, 2, vertices{0, 1, 2, 3},
		},
		"steps that parts of a join share count once": {
			5,
			edges{0: {to(1, step)}, 1: {to(2, step), to(3, step)}},
			[]search.Join{{vertices{2, 3}, to(4, step)}},
			false, 4, 4,
			vertices{0, 1, 2, 3, 4},
		},
		"a part is derived from what another part needs": { // 3 costs one step by 1 and by 2
			5,
			edges{0: {to(1, step), to(2, step)}, 1: {to(3, free)}, 2: {to(3, free)}},
			[]search.Join{{vertices{2, 3}, to(4, free)}},
			false, 4, 1,
			vertices{0, 2, 3, 4},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			s := graphOf(tc.size, tc.edges, tc.joins...).Solver(tc.possible)
			defer s.Release()
			s.Solve(0)
			if !s.Has(tc.end) {
				if tc.cost != -1 {
					t.Errorf("vertex %d is not reached", tc.end)
				}
				return
			}
			if path := s.Derivation(tc.end); s.Cost(tc.end) != tc.cost || !slices.Equal(path, tc.path) {
				t.Errorf("got %d steps by %v, want %d by %v", s.Cost(tc.end), path, tc.cost, tc.path)
			}
		})
	}
}

// On random graphs, what is reached is the least set that is closed under edges and joins: in one search, in one that ends at a
// vertex, beyond a base, and from further vertices.
func TestSolveReachesTheClosure(t *testing.T) {
	for seed := range uint64(500) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			g := randomGraph(random)
			for _, possible := range []bool{false, true} {
				one, other := search.Vertex(random.IntN(len(g.Out))), search.Vertex(random.IntN(len(g.Out)))
				want := closure(g, possible, one, other)
				s := g.Solver(possible)
				s.Solve(one, other)
				same(t, "together", g, s, want)
				s.Solve(one)
				s.Add(other)
				same(t, "one after the other", g, s, want)
				s.Solve(one)
				s.Keep()
				s.Solve(other)
				same(t, "beyond a base", g, s, want)
				s.Release()

				s = g.Solver(possible)
				alone := closure(g, possible, one)
				if s.SolveUntil(one, other); s.Has(other) != alone[other] {
					t.Errorf("until %d: got %t", other, s.Has(other))
				}
				s.Solve(one)
				same(t, "after others", g, s, alone)
				s.Release()
			}
		})
	}
}

// What leads to a vertex through edges is what is reached from it in the reversed graph.
func TestReversed(t *testing.T) {
	for seed := range uint64(100) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 1)))
		g.Joins, g.JoinsOf = nil, make([][]int32, len(g.Out))
		for _, possible := range []bool{false, true} {
			r := g.Reversed(possible, nil)
			for to := range search.Vertex(len(g.Out)) {
				back := closure(r, true, to)
				for from := range search.Vertex(len(g.Out)) {
					if leads := closure(g, possible, from)[to]; leads != back[from] {
						t.Fatalf("seed %d: that %d leads to %d is %t, and reversed %t", seed, from, to, leads, back[from])
					}
				}
			}
		}
	}
}

func randomGraph(random *rand.Rand) *search.Graph {
	n := 3 + random.IntN(8)
	vertex := func() search.Vertex { return search.Vertex(random.IntN(n)) }
	edge := func() search.Edge {
		return search.Edge{To: vertex(), Row: search.Row(random.IntN(2)), DependsOn: int32(max(0, random.IntN(4)-2))}
	}
	edges := map[search.Vertex][]search.Edge{}
	for range n {
		from := vertex()
		edges[from] = append(edges[from], edge())
	}
	var joins []search.Join
	for range random.IntN(n) {
		from := []search.Vertex{vertex(), vertex(), vertex()}
		slices.Sort(from)
		joins = append(joins, search.Join{From: slices.Compact(from), Edge: edge()})
	}
	return graphOf(n, edges, joins...)
}

// closure is the least set with the starts that is closed under edges and joins.
func closure(g *search.Graph, possible bool, starts ...search.Vertex) map[search.Vertex]bool {
	has := map[search.Vertex]bool{}
	for _, v := range starts {
		has[v] = true
	}
	for before := -1; before != len(has); {
		before = len(has)
		for v := range g.Out {
			for _, e := range g.Out[v] {
				if has[search.Vertex(v)] && (possible || e.DependsOn == 0) {
					has[e.To] = true
				}
			}
		}
		for _, j := range g.Joins {
			open := slices.ContainsFunc(j.From, func(v search.Vertex) bool { return !has[v] })
			if !open && (possible || j.DependsOn == 0) {
				has[j.To] = true
			}
		}
	}
	return has
}

func same(t *testing.T, how string, g *search.Graph, s *search.Solver, want map[search.Vertex]bool) {
	t.Helper()
	for v := range search.Vertex(len(g.Out)) {
		if s.Has(v) != want[v] {
			t.Errorf("%s: that vertex %d is reached is %t, want %t", how, v, s.Has(v), want[v])
		}
	}
}
