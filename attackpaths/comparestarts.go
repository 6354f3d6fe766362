package attackpaths

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// start is what is compared: a node, a service account, or an object that pods are made from.
type start struct {
	holding Holding
	// before and after are its vertices in each graph, none if it is not there: those of the pods, of a workload.
	before, after []vertex
	// self are the ids of the start itself: a node's credential too, and the pods of a workload.
	self []int32
}

// isWorkload reports whether a start is an object that pods are made from.
func isWorkload(start Holding) bool { return start.Kind != Node && start.Kind != ServiceAccount }

// startIndex has the starts of both graphs by their holdings.
type startIndex map[Holding]*start

func (x startIndex) of(h Holding) *start {
	if x[h] == nil {
		x[h] = &start{holding: h}
	}
	return x[h]
}

func (x startIndex) sorted() []*start {
	return slices.SortedFunc(maps.Values(x), compareStarts)
}

func compareStarts(a, b *start) int { return a.holding.Compare(b.holding) }

// starts are the nodes and service accounts of both graphs, sorted.
func (c *comparer) starts() []*start {
	all := startIndex{}
	for _, v := range c.before.starts {
		s := all.of(c.holdings[c.before.ids[v]])
		s.before = append(s.before, v)
	}
	for _, v := range c.after.starts {
		s := all.of(c.holdings[c.after.ids[v]])
		s.after = append(s.after, v)
	}
	starts := all.sorted()
	for _, s := range starts {
		s.self = []int32{c.idOf[s.holding]}
		if credential := c.credentialOf[s.self[0]]; credential >= 0 {
			s.self = append(s.self, credential)
		}
	}
	return starts
}

// workloads are those that have a pod unlike all that they had before.
func (c *comparer) workloads() []*start {
	all := startIndex{}
	for i, p := range c.after.pods {
		if mayRun(p) {
			w, v := all.of(usedPod(p)), c.after.firstPod+vertex(i)
			w.after, w.self = append(w.after, v), append(w.self, c.after.ids[v])
		}
	}
	for i, p := range c.before.pods {
		if w := all[usedPod(p)]; w != nil && mayRun(p) {
			w.before = append(w.before, c.before.firstPod+vertex(i))
		}
	}
	return slices.DeleteFunc(all.sorted(), func(w *start) bool {
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
}

func (g *Graph) podOf(v vertex) *inventory.Pod { return g.pods[v-g.firstPod] }

// startGroup is starts that have most of their edges in common, in each graph.
type startGroup struct {
	starts []*start
	// before and after are the vertices to which edges lead from each of the starts.
	before, after []vertex
}

// smallGroup is how many starts a group needs, so that a search for what they have in common pays.
const smallGroup = 16

// groups puts the starts together for which something may change. Those of small groups, and workloads, have nothing in
// common.
func (c *comparer) groups(starts []*start) []startGroup {
	rest := startGroup{starts: c.workloads()}
	byKind := map[string][]*start{}
	for _, s := range starts {
		if len(s.before) == 0 || len(s.after) == 0 || c.before.affected[s.before[0]] || c.after.affected[s.after[0]] {
			byKind[s.holding.Kind] = append(byKind[s.holding.Kind], s)
		}
	}
	var all []startGroup
	for _, kind := range [...]string{Node, ServiceAccount} {
		index := map[string]*startGroup{}
		before := c.before.commonOf(byKind[kind], func(s *start) []vertex { return s.before })
		after := c.after.commonOf(byKind[kind], func(s *start) []vertex { return s.after })
		for i, s := range byKind[kind] {
			has := vertex(2*len(s.before) + len(s.after))
			key := slices.Concat([]vertex{has}, before[i], []vertex{none}, after[i])
			id, _ := binary.Append(nil, binary.NativeEndian, key)
			if index[string(id)] == nil {
				index[string(id)] = &startGroup{before: before[i], after: after[i]}
			}
			g := index[string(id)]
			g.starts = append(g.starts, s)
		}
		for _, id := range slices.Sorted(maps.Keys(index)) {
			if g := index[id]; len(g.starts) >= smallGroup {
				all = append(all, *g)
			} else {
				rest.starts = append(rest.starts, g.starts...)
			}
		}
	}
	slices.SortFunc(rest.starts, compareStarts)
	if len(rest.starts) > 0 {
		all = append(all, rest)
	}
	return all
}

// commonOf finds for each start the popular vertices to which edges lead from it: those of half of
// the starts, and what the scheduler may move to nodes.
func (s *side) commonOf(starts []*start, vertices func(*start) []vertex) [][]vertex {
	count := map[vertex]int{}
	known := 0
	successors := make([][]vertex, len(starts))
	for i, of := range starts {
		for _, v := range vertices(of) {
			known++
			successors[i] = s.successors(v, true)
		}
		for _, to := range successors[i] {
			count[to]++
		}
	}
	for i, of := range starts {
		successors[i] = slices.DeleteFunc(successors[i], func(to vertex) bool {
			popular := count[to]*2 >= known || of.holding.Kind == Node && s.keys[to].kind == isFact
			return count[to] < 2 || !popular
		})
	}
	return successors
}
