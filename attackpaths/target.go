package attackpaths

import (
	"fmt"
	"maps"
	"slices"
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
		if s.has(v) && (found == none || i != last && s.cost[v] < s.cost[found]) {
			found = v
		}
	}
	return found
}
