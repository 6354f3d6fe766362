package attackpaths

import (
	"slices"
)

// From returns what is reached from a start, with the shortest path to each holding.
func (g *Graph) From(start Holding) (Result, error) {
	v, err := g.find(start)
	if err != nil {
		return Result{}, err
	}
	certain, possible := g.newSolver(false), g.newSolver(true)
	certain.solve(v)
	possible.solve(v)
	return Result{
		Start:        start,
		ClusterAdmin: certainty(certain, possible, g.index[key{kind: isClusterAdmin}]),
		Reached:      g.reached(v, certain, possible),
	}, nil
}

// certainty says how a vertex is reached.
func certainty(certain, possible *solver, v vertex) Certainty {
	switch {
	case certain.has(v):
		return Certain
	case possible.has(v):
		return Possible
	}
	return No
}

// reached lists the holdings with their paths.
func (g *Graph) reached(start vertex, certain, possible *solver) []Reached {
	all := []Reached{}
	for h, w := range g.ways(start, certain, possible) {
		all = append(all, Reached{Holding: h, Certainty: w.certainty, Path: w.solver.path(w.vertex)})
	}
	slices.SortFunc(all, func(a, b Reached) int { return compareHoldings(a.Holding, b.Holding) })
	return all
}

// way is how a holding is reached.
type way struct {
	vertex    vertex
	solver    *solver
	certainty Certainty
}

func (w way) cost() int32 { return w.solver.cost[w.vertex] }

// ways finds for each holding but the start the vertex through which it is reached. A user that
// is a node's credential too has two: what is certain comes first, then what costs less.
func (g *Graph) ways(start vertex, certain, possible *solver) map[Holding]way {
	self, _ := g.keys[start].holding()
	ways := map[Holding]way{}
	for _, v := range possible.reached {
		w := way{v, possible, Possible}
		if certain.has(v) {
			w = way{v, certain, Certain}
		}
		h, ok := g.keys[v].holding()
		if !ok || h == self || w.solver.isPartOfNode(v) {
			continue
		}
		known, ok := ways[h]
		if !ok || w.certainty > known.certainty || w.certainty == known.certainty && w.cost() < known.cost() {
			ways[h] = w
		}
	}
	return ways
}

// isPartOfNode reports whether a vertex is the credential of a node that is reached.
func (s *solver) isPartOfNode(v vertex) bool {
	from := s.via[v].from
	return s.keys[v].kind == isNodeUser && from != none && s.keys[from].kind == isNode
}
