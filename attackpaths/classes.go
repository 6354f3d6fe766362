package attackpaths

import (
	"cmp"
	"slices"
	"strings"
)

// classes puts nodes together that reach the same, but for themselves: their sets are the same
// without themselves, or, where they reach each other, with themselves.
func (g *Graph) classes(starts []vertex, found map[vertex]nodeReach) []Class {
	type class struct {
		Class
		first vertex
		open  *openRights
		// groups are those whose rights are in open.
		groups map[*openRights]bool
	}
	type id struct {
		admin                               Certainty
		controlPlane                        bool
		certainWithStart, possibleWithStart bool
		signature                           signature
	}
	index := map[id]int{}
	var all []class
	for _, start := range starts {
		r := found[start]
		ids := [...]id{
			{r.admin, r.controlPlane, false, false, r.others},
			{r.admin, r.controlPlane, true, true, r.all},
			{r.admin, r.controlPlane, true, false, signature{r.all.certain, r.others.possible}},
			{r.admin, r.controlPlane, false, true, signature{r.others.certain, r.all.possible}},
		}
		at := -1
		for _, id := range ids {
			if known, ok := index[id]; ok {
				at = known
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, class{
				Class: Class{ClusterAdmin: r.admin, ControlPlane: r.controlPlane, Counts: r.counts}, first: start,
				open: newOpenRights(), groups: map[*openRights]bool{},
			})
		}
		if !all[at].groups[r.openOfGroup] {
			all[at].groups[r.openOfGroup] = true
			all[at].open.merge(r.openOfGroup)
		}
		all[at].open.merge(r.open)
		for _, id := range ids {
			index[id] = at
		}
		all[at].Nodes = append(all[at].Nodes, g.keys[start].name)
	}
	slices.SortFunc(all, func(a, b class) int {
		return cmp.Or(
			-cmp.Compare(
				a.ClusterAdmin,
				b.ClusterAdmin,
			),
			compareBools(a.ControlPlane, b.ControlPlane),
			-cmp.Compare(len(a.Nodes), len(b.Nodes)),
			strings.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	classes := make([]Class, len(all))
	certain, possible := g.solver(false), g.solver(true)
	defer g.release(certain)
	defer g.release(possible)
	admin := g.index[key{kind: isClusterAdmin}]
	for i, c := range all {
		classes[i] = c.Class
		classes[i].NotFollowed = c.open.list(g)
		switch c.ClusterAdmin {
		case Certain:
			certain.solveUntil(c.first, admin)
			classes[i].Path = certain.path(admin)
		case Possible:
			possible.solveUntil(c.first, admin)
			classes[i].Path = possible.path(admin)
		}
	}
	return classes
}
