package attackpaths

import (
	"encoding/binary"
	"slices"
)

// startGroup is starts that have most of their edges in common, in each graph.
type startGroup struct {
	starts []start
	// before and after are the vertices to which edges lead from each of the starts.
	before, after []vertex
}

// smallGroup is how many starts a group needs, so that a search for what they have in common pays.
const smallGroup = 16

// groups puts the starts together for which something may change.
func (c *comparer) groups() []startGroup {
	byKind := map[string][]start{}
	for _, s := range c.starts() {
		if s.before == none || s.after == none || c.before.affected[s.before] || c.after.affected[s.after] {
			byKind[s.holding.Kind] = append(byKind[s.holding.Kind], s)
		}
	}
	return append(c.groupsOf(byKind[Node]), c.groupsOf(byKind[ServiceAccount])...)
}

func (c *comparer) groupsOf(starts []start) []startGroup {
	before := make([]vertex, len(starts))
	after := make([]vertex, len(starts))
	for i, s := range starts {
		before[i], after[i] = s.before, s.after
	}
	b, a := c.before.commonOf(before), c.after.commonOf(after)
	index := map[string]int{}
	var all []startGroup
	for i, s := range starts {
		id := appendVertices(appendVertices([]byte{has(s.before), has(s.after)}, b[i]), a[i])
		at, ok := index[string(id)]
		if !ok {
			at = len(all)
			index[string(id)] = at
			all = append(all, startGroup{before: b[i], after: a[i]})
		}
		all[at].starts = append(all[at].starts, s)
	}
	return mergeSmall(all)
}

func has(v vertex) byte {
	if v == none {
		return 0
	}
	return 1
}

func appendVertices(id []byte, all []vertex) []byte {
	id = binary.AppendUvarint(id, uint64(len(all)))
	for _, v := range all {
		id = binary.AppendUvarint(id, uint64(v))
	}
	return id
}

// mergeSmall makes one group of all small ones with the same graphs. They have nothing in common.
func mergeSmall(groups []startGroup) []startGroup {
	var all []startGroup
	small := map[[2]byte]*startGroup{}
	var order []*startGroup
	for _, g := range groups {
		if len(g.starts) >= smallGroup {
			all = append(all, g)
			continue
		}
		id := [2]byte{has(g.starts[0].before), has(g.starts[0].after)}
		if small[id] == nil {
			small[id] = &startGroup{}
			order = append(order, small[id])
		}
		small[id].starts = append(small[id].starts, g.starts...)
	}
	for _, g := range order {
		slices.SortFunc(g.starts, compareStarts)
		all = append(all, *g)
	}
	return all
}

// commonOf finds for each start the popular vertices to which edges lead from it: those of half of
// the starts, and what the scheduler may move to nodes.
func (s *side) commonOf(starts []vertex) [][]vertex {
	count := map[vertex]int{}
	known := 0
	successors := make([][]vertex, len(starts))
	for i, v := range starts {
		if v == none {
			continue
		}
		known++
		successors[i] = s.successors(v, true)
		for _, to := range successors[i] {
			count[to]++
		}
	}
	common := make([][]vertex, len(starts))
	for i, all := range successors {
		for _, to := range all {
			popular := count[to]*2 >= known || s.keys[starts[i]].kind == isNode && s.keys[to].kind == isFact
			if count[to] > 1 && popular {
				common[i] = append(common[i], to)
			}
		}
	}
	return common
}
