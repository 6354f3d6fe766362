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
	certain, possible := g.solveBoth(v)
	defer g.release(certain)
	defer g.release(possible)
	r := g.result(start, certain, possible)
	r.Reached = g.reached(v, certain, possible)
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

// reached lists the holdings with their paths.
func (g *Graph) reached(start vertex, certain, possible *solver) []Reached {
	ways := g.ways(start, certain, possible)
	all := make([]Reached, len(ways))
	for i, w := range ways {
		h, _ := g.keys[w.vertex].holding()
		all[i] = Reached{Holding: h, Certainty: w.certainty, Path: w.solver.path(w.vertex)}
	}
	return all
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
	g.sort(ways)
	return g.best(ways)
}

// best keeps one way to each holding of sorted ways.
func (g *Graph) best(ways []way) []way {
	kept := ways[:0]
	for _, w := range ways {
		last := len(kept) - 1
		switch {
		case last < 0 || !g.sameHolding(kept[last].vertex, w.vertex):
			kept = append(kept, w)
		case w.certainty > kept[last].certainty || w.certainty == kept[last].certainty && w.cost() < kept[last].cost():
			kept[last] = w
		}
	}
	return kept
}

func (g *Graph) sameHolding(a, b vertex) bool {
	x, y := &g.keys[a], &g.keys[b]
	return x.rank() == y.rank() && x.namespace == y.namespace && x.name == y.name
}

// sort sorts ways by their holdings. Most vertices of a kind are made in this order, so that
// little is left when the numbers are sorted.
func (g *Graph) sort(ways []way) {
	slices.SortFunc(ways, func(a, b way) int {
		if x, y := g.keys[a.vertex].rank(), g.keys[b.vertex].rank(); x != y {
			return int(x) - int(y)
		}
		return int(a.vertex - b.vertex)
	})
	slices.SortFunc(ways, func(a, b way) int {
		x, y := &g.keys[a.vertex], &g.keys[b.vertex]
		switch {
		case x.rank() != y.rank():
			return int(x.rank()) - int(y.rank())
		case x.namespace != y.namespace:
			return compareStrings(x.namespace, y.namespace)
		case x.name != y.name:
			return compareStrings(x.name, y.name)
		}
		return int(a.vertex - b.vertex)
	})
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
