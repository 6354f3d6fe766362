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
	groups := byPlace(r.Reached, func(x Reached) Holding { return x.Holding })
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

// byPlace groups what is reached by namespace and kind, in the order of these.
func byPlace[T any](all []T, holding func(T) Holding) [][]T {
	type place struct{ namespace, kind string }
	groups := map[place][]T{}
	var order []place
	for _, x := range all {
		h := holding(x)
		if h.Kind == ClusterAdmin {
			continue
		}
		p := place{namespaceOf(h), h.Kind}
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], x)
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), kindOrder[a.kind]-kindOrder[b.kind])
	})
	sorted := make([][]T, len(order))
	for i, p := range order {
		sorted[i] = groups[p]
	}
	return sorted
}

func namespaceOf(h Holding) string {
	if h.Kind == Namespace {
		return h.Name
	}
	return h.Namespace
}
