package attackpaths

import (
	"cmp"
	"slices"
	"strings"
)

// From returns what is reached from a start, with the shortest path to each holding.
func (g *Graph) From(start Holding) (Result, error) {
	v, err := g.find(start)
	if err != nil {
		return Result{}, err
	}
	certain, possible := g.solveBoth(v)
	defer g.release(certain)
	defer g.release(possible)
	r := g.result(start, certain, possible)
	for _, w := range g.ways(v, certain, possible) {
		h, _ := g.keys[w.vertex].holding()
		r.Reached = append(r.Reached, Reached{Holding: h, Certainty: w.certainty, Path: w.solver.path(w.vertex)})
	}
	return r, nil
}

// solveBoth finds what is reached certainly, and what is reached possibly. Both are to be released.
func (g *Graph) solveBoth(start vertex) (certain, possible *solver) {
	certain, possible = g.solver(false), g.solver(true)
	certain.solve(start)
	possible.solve(start)
	return certain, possible
}

// result is what solved searches say about a start, without paths.
func (g *Graph) result(start Holding, certain, possible *solver) Result {
	r := Result{
		Start: start, ClusterAdmin: certainty(certain, possible, g.index[key{kind: isClusterAdmin}]), Reached: []Reached{},
	}
	if r.ClusterAdmin != Certain {
		of := possible
		if r.ClusterAdmin == Possible {
			of = certain
		}
		r.NotFollowed = g.openRightsOf(of.reached).list(g)
	}
	return r
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

// way is how a holding is reached.
type way struct {
	vertex    vertex
	solver    *solver
	certainty Certainty
}

func (w way) cost() int32 { return w.solver.cost[w.vertex] }

// ways finds for each holding but the start the vertex through which it is reached, in the order
// of holdings. A user that is a node's credential too has several, and so has a service account
// with a token that is associated with a node: what is certain comes first, then what costs less.
func (g *Graph) ways(start vertex, certain, possible *solver) []way {
	self, _ := g.keys[start].holding()
	ways := make([]way, 0, len(possible.reached))
	for _, v := range possible.reached {
		w := way{v, possible, Possible}
		if certain.has(v) {
			w = way{v, certain, Certain}
		}
		h, ok := g.keys[v].holding()
		if ok && h != self && !w.solver.isPartOfNode(v) {
			ways = append(ways, w)
		}
	}
	// Most vertices of a kind are made in the order of holdings, so that little is left to sort after them.
	slices.SortFunc(ways, func(a, b way) int { return int(a.vertex - b.vertex) })
	slices.SortFunc(ways, func(a, b way) int {
		return cmp.Or(g.compareHoldings(a, b), int(b.certainty)-int(a.certainty), int(a.cost()-b.cost()), int(a.vertex-b.vertex))
	})
	return slices.CompactFunc(ways, func(a, b way) bool { return g.compareHoldings(a, b) == 0 })
}

func (g *Graph) compareHoldings(a, b way) int {
	x, y := &g.keys[a.vertex], &g.keys[b.vertex]
	if x.rank() != y.rank() {
		return int(x.rank()) - int(y.rank())
	}
	return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.name, y.name))
}

// rank orders the kinds of holdings.
func (k *key) rank() vertexKind {
	switch k.kind {
	case isNodeUser:
		return isUser
	case isAssociated:
		return isServiceAccount
	}
	return k.kind
}

// isPartOfNode reports whether a vertex is the credential of a node that is reached.
func (s *solver) isPartOfNode(v vertex) bool {
	from := s.via[v].from
	return s.keys[v].kind == isNodeUser && from != none && (s.keys[from].kind == isNode || s.isPartOfNode(from))
}
