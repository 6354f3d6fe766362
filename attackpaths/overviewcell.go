package attackpaths

import (
	"cmp"
	"slices"
	"strings"
)

// Cell is what is reached of one kind in one namespace.
type Cell struct {
	// Namespace is empty for what is in none. A holding of kind Namespace is in its namespace.
	Namespace, Kind   string
	Certain, Possible int
	// Listed are the holdings: what is certain comes first, then what has a shorter path. In an
	// [Overview] at most OverviewOptions.Names are listed, and no pods are.
	Listed []Reached
	// From is where the paths start.
	From Holding
}

// Cells groups what is reached by namespace and kind. It leaves out cluster-admin.
func (r Result) Cells() []Cell {
	groups := byPlace(slices.Clone(r.Reached), func(x Reached) Holding { return x.Holding })
	cells := make([]Cell, len(groups))
	for i, group := range groups {
		slices.SortStableFunc(group, func(a, b Reached) int {
			return cmp.Or(int(b.Certainty)-int(a.Certainty), len(a.Path)-len(b.Path))
		})
		c := Cell{Namespace: namespaceOf(group[0].Holding), Kind: group[0].Kind, Listed: group, From: r.Start}
		for _, x := range group {
			c.count(x.Certainty)
		}
		cells[i] = c
	}
	return cells
}

// Compare orders cells by namespace and kind.
func (c Cell) Compare(d Cell) int {
	return cmp.Or(strings.Compare(c.Namespace, d.Namespace), kindOrder[c.Kind]-kindOrder[d.Kind])
}

func (c *Cell) count(certainty Certainty) {
	if certainty == Certain {
		c.Certain++
	} else {
		c.Possible++
	}
}

// byPlace groups what is reached by namespace and kind, in the order of these. What is of one kind
// and in one namespace is together in the list.
func byPlace[T any](all []T, holding func(T) Holding) [][]T {
	type place struct {
		namespace, kind string
		from, to        int
	}
	var places []place
	for i, x := range all {
		h := holding(x)
		namespace := namespaceOf(h)
		last := len(places) - 1
		switch {
		case h.Kind == ClusterAdmin:
		case last >= 0 && places[last].namespace == namespace && places[last].kind == h.Kind:
			places[last].to = i + 1
		default:
			places = append(places, place{namespace, h.Kind, i, i + 1})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), kindOrder[a.kind]-kindOrder[b.kind])
	})
	groups := make([][]T, len(places))
	for i, p := range places {
		groups[i] = all[p.from:p.to]
	}
	return groups
}

func namespaceOf(h Holding) string {
	if h.Kind == Namespace {
		return h.Name
	}
	return h.Namespace
}
