package attackpaths

import (
	"cmp"
	"fmt"
	"maps"
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
		r.NotFollowed = g.openRightsOf(found.possible.Reached()).list(g)
	case Possible:
		r.NotFollowed = g.openRightsOf(found.certain.Reached()).list(g)
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

func (w way) cost() int32 { return w.solver.Cost(w.vertex) }

// ways finds for each holding but the start the vertex through which it is reached, in the order
// of holdings. A user that is a node's credential too has several, and so has a service account
// with a token that is associated with a node: what is certain comes first, then what costs less.
// What is less than at least is left out.
func (r reach) ways(start vertex, atLeast Certainty) []way {
	g := r.possible.Graph
	self, _ := g.keys[start].holding()
	all := r.by(atLeast).Reached()
	ways := make([]way, 0, len(all))
	for _, v := range all {
		h, ok := g.keys[v].holding()
		w := way{v, r.possible, Possible}
		if r.certain.Has(v) {
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

// isPartOfNode reports whether a vertex is the credential of a node that is reached. Another node's user, which that credential
// may impersonate, is none.
func (s *solver) isPartOfNode(v vertex) bool {
	from, user := s.Via(v).From, s.keys[v].name
	if s.keys[v].kind != isNodeUser || from == none {
		return false
	}
	of := s.keys[from]
	return of.kind == isNode && nodeUserPrefix+of.name == user || of.name == user && s.isPartOfNode(from)
}

// Target is a holding that paths were searched to.
type Target struct {
	Holding
	// Certainty says whether it is reached, by itself or through cluster-admin, which owns everything.
	Certainty Certainty `json:"certainty"`
}

// Holdings lists the holdings of a kind that the graph has, sorted by namespace and name.
func (g *Graph) Holdings(kind string) []Holding {
	found := map[Holding]bool{}
	for _, k := range g.keys {
		if h, ok := k.holding(); ok && h.Kind == kind {
			found[h] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), Holding.Compare)
}

// FromTo is [Graph.From] with one path, to a target: its own, or that to cluster-admin where only this is as
// certain. The target must be in the graph.
func (g *Graph) FromTo(start, target Holding) (Result, error) {
	v, err := g.find(start)
	if err != nil {
		return Result{}, err
	}
	ends, err := g.ends(target)
	if err != nil {
		return Result{}, err
	}
	found := g.newReach()
	defer found.release()
	found.solve(v)
	r := g.result(start, found)
	r.Target = &Target{Holding: target}
	for _, certainty := range [...]Certainty{Certain, Possible} {
		s := found.by(certainty)
		if end := s.nearest(ends); end != none {
			r.Target.Certainty, r.Reached = certainty, []Reached{way{end, s, certainty}.reached()}
			break
		}
	}
	return r, nil
}

// ends are the vertices that stand for a holding, with cluster-admin last.
func (g *Graph) ends(target Holding) ([]vertex, error) {
	admin := g.index[key{kind: isClusterAdmin}]
	var all []vertex
	for v, k := range g.keys {
		if h, ok := k.holding(); ok && h == target && vertex(v) != admin {
			all = append(all, vertex(v))
		}
	}
	if len(all) == 0 && target.Kind != ClusterAdmin {
		return nil, fmt.Errorf("%s is not in the cluster's state", target)
	}
	return append(all, admin), nil
}

// nearest is the vertex of the target that costs least, or else cluster-admin, or none.
func (s *solver) nearest(ends []vertex) vertex {
	found := none
	last := len(ends) - 1
	for i, v := range ends {
		if s.Has(v) && (found == none || i != last && s.Cost(v) < s.Cost(found)) {
			found = v
		}
	}
	return found
}

// reach searches for what starts reach certainly, and for what they reach at all.
type reach struct{ certain, possible *solver }

// newReach returns a search that is to be released.
func (g *Graph) newReach() reach { return reach{g.solver(false), g.solver(true)} }

func (r reach) release() {
	r.certain.Release()
	r.possible.Release()
}

// solve finds what is reached from one of some vertices.
func (r reach) solve(starts ...vertex) {
	r.certain.Solve(starts...)
	r.possible.Solve(starts...)
}

// until says how a start reaches an end, and searches no further. It does not search for what is possible if the end is
// reached certainly.
func (r reach) until(start, end vertex) Certainty {
	if r.certain.SolveUntil(start, end); !r.certain.Has(end) {
		r.possible.SolveUntil(start, end)
	}
	return r.of(end)
}

// of says how a vertex is reached.
func (r reach) of(v vertex) Certainty {
	switch {
	case r.certain.Has(v):
		return Certain
	case r.possible.Has(v):
		return Possible
	}
	return No
}

// by is the search that finds what is reached with a certainty.
func (r reach) by(c Certainty) *solver {
	if c == Certain {
		return r.certain
	}
	return r.possible
}

// eachGroup calls a function for each group of some starts, with a search beyond what the group has in common, on several
// processors.
func (g *Graph) eachGroup(starts []vertex, do func([]vertex, reach)) {
	groups := g.groups(starts)
	inParallel(len(groups), func(i int) {
		r := g.reachBeyond(groups[i])
		defer r.release()
		do(groups[i], r)
	})
}

// reachBeyond returns a search beyond what all starts of a group have in common.
func (g *Graph) reachBeyond(group []vertex) reach {
	r := g.newReach()
	for _, certainty := range [...]Certainty{Certain, Possible} {
		s := r.by(certainty)
		s.Solve(g.successorsOfAll(group, certainty == Possible)...)
		s.Keep()
	}
	return r
}

// reachGoal says how each of some nodes reaches the goal.
func (g *Graph) reachGoal(names []string) []Certainty {
	found, places := make([]Certainty, len(names)), map[vertex]int{}
	var nodes []vertex
	for i, name := range names {
		if v, ok := g.index[key{kind: isNode, name: name}]; ok {
			places[v], nodes = i, append(nodes, v)
		}
	}
	g.eachGroup(nodes, func(group []vertex, r reach) {
		for _, v := range group {
			found[places[v]] = r.until(v, g.goal)
		}
	})
	return found
}
