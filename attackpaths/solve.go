package attackpaths

import "github.com/node-authorizer/node-authorizer/attackpaths/internal/search"

// solver is a search in the graph, with the paths that it finds. What cluster-admin owns is not followed.
type solver struct {
	*Graph
	*search.Solver
	// trails are the derivations of vertices through which others are reached.
	trails map[vertex]trail
}

// solver returns a search, which also takes steps that depend on what the state does not show if they count. It is to be released.
func (g *Graph) solver(possible bool) *solver {
	return &solver{Graph: g, Solver: g.edges.Solver(possible), trails: map[vertex]trail{}}
}

// Solve is [search.Solver.Solve].
func (s *solver) Solve(starts ...vertex) {
	clear(s.trails)
	s.Solver.Solve(starts...)
}

// SolveUntil is [search.Solver.SolveUntil].
func (s *solver) SolveUntil(start, end vertex) {
	clear(s.trails)
	s.Solver.SolveUntil(start, end)
}
