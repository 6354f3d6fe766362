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
	found := g.newReach()
	defer found.release()
	found.solve(v)
	r := g.result(start, found)
	for _, w := range found.ways(v, Possible) {
		r.Reached = append(r.Reached, w.reached())
	}
	return r, nil
}

// result is what searches say about a start, without paths.
func (g *Graph) result(start Holding, found reach) Result {
	r := Result{Start: start, ClusterAdmin: found.of(g.index[key{kind: isClusterAdmin}]), Reached: []Reached{}}
	switch r.ClusterAdmin {
	case No:
		r.NotFollowed = g.openRightsOf(found.possible.reached).list(g)
	case Possible:
		r.NotFollowed = g.openRightsOf(found.certain.reached).list(g)
	}
	return r
}

// way is how a holding is reached.
type way struct {
	vertex    vertex
	solver    *solver
	certainty Certainty
}

func (w way) holding() Holding {
	h, _ := w.solver.keys[w.vertex].holding()
	return h
}

func (w way) reached() Reached { return Reached{w.holding(), w.certainty, w.solver.path(w.vertex)} }

func (w way) cost() int32 { return w.solver.cost[w.vertex] }

// ways finds for each holding but the start the vertex through which it is reached, in the order
// of holdings. A user that is a node's credential too has several, and so has a service account
// with a token that is associated with a node: what is certain comes first, then what costs less.
// What is less than at least is left out.
func (r reach) ways(start vertex, atLeast Certainty) []way {
	g := r.possible.Graph
	self, _ := g.keys[start].holding()
	all := r.by(atLeast).reached
	ways := make([]way, 0, len(all))
	for _, v := range all {
		h, ok := g.keys[v].holding()
		w := way{v, r.possible, Possible}
		if r.certain.has(v) {
			w.solver, w.certainty = r.certain, Certain
		}
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
