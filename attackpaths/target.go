package attackpaths

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
	return slices.SortedFunc(maps.Keys(found), func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
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
	certain, possible := g.solveBoth(v)
	defer g.release(certain)
	defer g.release(possible)
	r := g.result(start, certain, possible)
	r.Target = &Target{Holding: target}
	for _, s := range []*solver{certain, possible} {
		end := s.nearest(ends)
		if end == none {
			continue
		}
		r.Target.Certainty = certainty(certain, possible, end)
		h, _ := g.keys[end].holding()
		r.Reached = []Reached{{Holding: h, Certainty: r.Target.Certainty, Path: s.path(end)}}
		break
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
		if s.has(v) && (found == none || i != last && s.cost[v] < s.cost[found]) {
			found = v
		}
	}
	return found
}

// AllNodesTo puts nodes together by whether they reach a target, which must be in the graph. Each class has the
// path of its first node. The target itself is in no class.
func (g *Graph) AllNodesTo(target Holding) ([]Class, error) {
	ends, err := g.ends(target)
	if err != nil {
		return nil, err
	}
	starts, found := searchGroups(g, func(nodes group) []nodeReach { return g.groupReachTo(nodes, ends) })
	starts = slices.DeleteFunc(starts, func(v vertex) bool { return v == ends[0] })
	type id struct {
		target, admin Certainty
		controlPlane  bool
	}
	open, classes := map[id]*openRights{}, map[id]*Class{}
	for _, v := range starts {
		r := found[v]
		i := id{r.target, r.admin, r.controlPlane}
		if classes[i] == nil {
			open[i] = newOpenRights()
			classes[i] = &Class{ClusterAdmin: r.admin, ControlPlane: r.controlPlane, Target: &r.target}
		}
		classes[i].Nodes = append(classes[i].Nodes, g.keys[v].name)
		open[i].merge(r.openOfGroup)
		open[i].merge(r.open)
	}
	all := []Class{}
	for i, c := range classes {
		slices.Sort(c.Nodes)
		c.NotFollowed = open[i].list(g)
		if i.target != No {
			s := g.solver(i.target == Possible)
			s.solve(g.index[key{kind: isNode, name: c.Nodes[0]}])
			c.Path = s.path(s.nearest(ends))
			g.release(s)
		}
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Class) int {
		return cmp.Or(
			-cmp.Compare(*a.Target, *b.Target), -cmp.Compare(a.ClusterAdmin, b.ClusterAdmin), compareBools(a.ControlPlane, b.ControlPlane),
		)
	})
	return all, nil
}

// groupReachTo computes whether each node of a group reaches a target.
func (g *Graph) groupReachTo(nodes group, ends []vertex) []nodeReach {
	certain, possible := g.solverBeyond(false, g.certainly(nodes)), g.solverBeyond(true, nodes.common)
	defer g.release(certain)
	defer g.release(possible)
	certainlyOpen, possiblyOpen := g.openRightsOf(certain.base.vertices()), g.openRightsOf(possible.base.vertices())
	admin := ends[len(ends)-1]
	found := make([]nodeReach, len(nodes.nodes))
	for i, v := range nodes.nodes {
		r := nodeReach{controlPlane: g.runsControlPlane(v)}
		certain.solveUntil(v, admin)
		switch {
		case certain.has(admin):
			r.admin, r.target = Certain, Certain
			found[i] = r
			continue
		case slices.ContainsFunc(ends, certain.has):
			r.target = Certain
		}
		possible.solveUntil(v, admin)
		of := possible
		r.openOfGroup = possiblyOpen
		if possible.has(admin) {
			// The search ended when cluster-admin was reached.
			r.admin, of, r.openOfGroup = Possible, certain, certainlyOpen
		}
		r.open = g.openRightsOf(of.reached)
		if slices.ContainsFunc(ends, possible.has) {
			r.target = max(r.target, Possible)
		}
		found[i] = r
	}
	return found
}
