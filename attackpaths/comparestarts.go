package attackpaths

import (
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// start is what is compared: a node, a service account, or an object that pods are made from.
type start struct {
	holding Holding
	// before and after are its vertices in each graph, none if it is not there. A workload has the vertices of its pods.
	before, after []vertex
	// self are the ids of the start itself: a node's credential too, and the pods of a workload.
	self []int32
}

// firstOf is the vertex of a node or service account; none where it is not.
func firstOf(vertices []vertex) vertex {
	if len(vertices) == 0 {
		return none
	}
	return vertices[0]
}

// isWorkload reports whether a start is an object that pods are made from.
func isWorkload(start Holding) bool { return start.Kind != Node && start.Kind != ServiceAccount }

func sortedStarts(all map[Holding]*start) []*start {
	return slices.SortedFunc(maps.Values(all), compareStarts)
}

func compareStarts(a, b *start) int { return a.holding.Compare(b.holding) }

// starts are the nodes and service accounts of both graphs, sorted.
func (c *comparer) starts() []*start {
	all := map[Holding]*start{}
	of := func(id int32) *start {
		h := c.holdings[id]
		if all[h] == nil {
			all[h] = &start{holding: h, self: []int32{id}}
			if credential := c.credentialOf[id]; credential >= 0 {
				all[h].self = append(all[h].self, credential)
			}
		}
		return all[h]
	}
	for _, v := range c.before.starts {
		s := of(c.before.ids[v])
		s.before = append(s.before, v)
	}
	for _, v := range c.after.starts {
		s := of(c.after.ids[v])
		s.after = append(s.after, v)
	}
	return sortedStarts(all)
}

// workloads are those that have a pod unlike all that they had before.
func (c *comparer) workloads() []*start {
	all := map[Holding]*start{}
	for i, p := range c.after.pods {
		if mayRun(p) {
			of, v := usedPod(p), c.after.firstPod+vertex(i)
			if all[of] == nil {
				all[of] = &start{holding: of}
			}
			all[of].after, all[of].self = append(all[of].after, v), append(all[of].self, c.after.ids[v])
		}
	}
	for i, p := range c.before.pods {
		if w := all[usedPod(p)]; w != nil && mayRun(p) {
			w.before = append(w.before, c.before.firstPod+vertex(i))
		}
	}
	maps.DeleteFunc(all, func(_ Holding, w *start) bool {
		return !slices.ContainsFunc(w.after, func(v vertex) bool {
			p := c.after.podOf(v)
			alike := func(u vertex) bool {
				q := c.before.podOf(u)
				return q.Template == p.Template || q.Like(p)
			}
			u := c.after.other[v] // most pods are as they were
			return !(slices.Contains(w.before, u) && alike(u)) && !slices.ContainsFunc(w.before, alike)
		})
	})
	return sortedStarts(all)
}

func (g *Graph) podOf(v vertex) *inventory.Pod { return g.pods[v-g.firstPod] }

// startGroup is starts that have most of their edges in common, in each graph. Before and after are their vertices, unless
// the starts have nothing in common.
type startGroup struct {
	starts        []*start
	before, after []vertex
}

// smallGroup is how many starts a group needs, so that a search for what they have in common pays.
const smallGroup = 16

// groups puts the starts together for which something may change. Starts of small groups, and workloads, have nothing in
// common.
func (c *comparer) groups(starts []*start) []startGroup {
	byKind := map[string][]*start{}
	for _, s := range starts {
		if len(s.before) == 0 || len(s.after) == 0 || c.affected.has(s.after[0]) {
			byKind[s.holding.Kind] = append(byKind[s.holding.Kind], s)
		}
	}
	var all []startGroup
	rest := startGroup{starts: c.workloads()}
	c.findBrought(rest.starts)
	for _, kind := range [...]string{Node, ServiceAccount} {
		starts := byKind[kind]
		before, after, lists := make([]vertex, len(starts)), make([]vertex, len(starts)), make([][]vertex, len(starts))
		for i, s := range starts {
			before[i], after[i] = firstOf(s.before), firstOf(s.after)
		}
		b, a := c.before.commonOf(before), c.after.commonOf(after)
		for i := range starts {
			lists[i] = slices.Concat([]vertex{min(before[i], 0), min(after[i], 0)}, b[i], []vertex{none}, a[i])
		}
		for _, places := range equalLists(lists) {
			var x startGroup
			for _, i := range places {
				s := starts[i]
				x.starts, x.before, x.after = append(x.starts, s), append(x.before, s.before...), append(x.after, s.after...)
			}
			if len(places) < smallGroup {
				rest.starts = append(rest.starts, x.starts...)
			} else {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(rest.starts, compareStarts)
	if len(rest.starts) > 0 {
		all = append(all, rest)
	}
	return all
}
