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
	self, _ := g.keys[start].holding()
	var all []Reached
	index := map[Holding]int{}
	for _, v := range possible.reached {
		h, ok := g.keys[v].holding()
		s, c := possible, Possible
		if certain.has(v) {
			s, c = certain, Certain
		}
		if !ok || h == self || s.isPartOfNode(v) {
			continue
		}
		// A user that is a node's credential too is one holding.
		at, known := index[h]
		switch {
		case !known:
			index[h] = len(all)
			all = append(all, Reached{Holding: h, Certainty: c, Path: s.path(v)})
		case c > all[at].Certainty:
			all[at] = Reached{Holding: h, Certainty: c, Path: s.path(v)}
		}
	}
	slices.SortFunc(all, func(a, b Reached) int { return compareHoldings(a.Holding, b.Holding) })
	return all
}

// isPartOfNode reports whether a vertex is the credential of a node that is reached.
func (s *solver) isPartOfNode(v vertex) bool {
	from := s.via[v].from
	return s.keys[v].kind == isNodeUser && from != none && s.keys[from].kind == isNode
}
