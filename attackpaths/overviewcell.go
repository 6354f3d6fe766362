package attackpaths

import (
	"cmp"
	"maps"
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
	order := func(x Reached) (Certainty, int) { return x.Certainty, len(x.Path) }
	groups := byPlace(r.Reached, func(x Reached) Holding { return x.Holding }, order)
	cells := make([]Cell, len(groups))
	for i, group := range groups {
		cells[i] = Cell{Namespace: namespaceOf(group[0].Holding), Kind: group[0].Kind, Listed: group, From: r.Start}
		for _, x := range group {
			cells[i].count(x.Certainty)
		}
	}
	return cells
}

// Compare orders cells by namespace and kind.
func (c Cell) Compare(d Cell) int {
	return cmp.Or(strings.Compare(c.Namespace, d.Namespace), compareKinds(c.Kind, d.Kind))
}

func (c *Cell) count(certainty Certainty) {
	if certainty == Certain {
		c.Certain++
	} else {
		c.Possible++
	}
}

// byPlace groups what is reached by namespace and kind, in the order of these. In a group, what is certain comes first, then what
// has a shorter path.
func byPlace[T any](all []T, holding func(T) Holding, order func(T) (Certainty, int)) [][]T {
	groups := map[Holding][]T{} // by namespace and kind
	for _, x := range all {
		if h := holding(x); h.Kind != ClusterAdmin {
			place := Holding{Kind: h.Kind, Namespace: namespaceOf(h)}
			groups[place] = append(groups[place], x)
		}
	}
	places := slices.SortedFunc(maps.Keys(groups), func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), compareKinds(a.Kind, b.Kind))
	})
	sorted := make([][]T, len(places))
	for i, place := range places {
		sorted[i] = groups[place]
		slices.SortStableFunc(sorted[i], func(a, b T) int {
			x, long := order(a)
			y, longer := order(b)
			return cmp.Or(int(y)-int(x), long-longer)
		})
	}
	return sorted
}

func namespaceOf(h Holding) string {
	if h.Kind == Namespace {
		return h.Name
	}
	return h.Namespace
}
