package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// comparedWorkload is an object that pods are made from, and its pods in each graph.
type comparedWorkload struct {
	holding       Holding
	before, after []int32
}

// ofWorkload reports whether the starts are workloads.
func (c *Difference) ofWorkload() bool {
	kind := c.Starts[0].Kind
	return kind != Node && kind != ServiceAccount
}

// workloads compares what the pods of new and changed workloads reach.
func (c *comparer) workloads() []Difference {
	var all []Difference
	for _, w := range c.changedWorkloads() {
		all = append(all, c.compareWorkload(w)...)
	}
	return all
}

// changedWorkloads lists the workloads that have a pod unlike all that they had before.
func (c *comparer) changedWorkloads() []*comparedWorkload {
	index := map[Holding]*comparedWorkload{}
	var all []*comparedWorkload
	for i, p := range c.after.pods {
		if !mayRun(p) {
			continue
		}
		h := usedPod(p)
		if index[h] == nil {
			index[h] = &comparedWorkload{holding: h}
			all = append(all, index[h])
		}
		index[h].after = append(index[h].after, int32(i))
	}
	for i, p := range c.before.pods {
		if w := index[usedPod(p)]; w != nil && mayRun(p) {
			w.before = append(w.before, int32(i))
		}
	}
	return slices.DeleteFunc(all, func(w *comparedWorkload) bool {
		return !slices.ContainsFunc(w.after, func(i int32) bool {
			return !slices.ContainsFunc(w.before, func(j int32) bool { return sameTemplate(c.before.pods[j], c.after.pods[i]) })
		})
	})
}

func sameTemplate(a, b *inventory.Pod) bool { return a.Template == b.Template || a.Like(b) }

// compareWorkload makes a difference for each kind of holdings, and each way in which they are reached.
func (c *comparer) compareWorkload(w *comparedWorkload) []Difference {
	reached := c.workloadLevels(w)
	byKind := map[workloadRow][]int32{}
	var order []workloadRow
	for id := range c.holdings {
		o, counts := c.workloadOutcome(w, reached, int32(id))
		if !counts {
			continue
		}
		row := workloadRow{c.holdings[id].Kind, o}
		if byKind[row] == nil {
			order = append(order, row)
		}
		byKind[row] = append(byKind[row], int32(id))
	}
	var all []Difference
	for _, row := range order {
		all = append(all, c.workloadDifference(w, row, byKind[row]))
	}
	return all
}

// workloadRow is what holdings of a row have in common.
type workloadRow struct {
	kind string
	outcome
}

// workloadLevels is how holdings are reached from the pods of a workload, by id.
func (c *comparer) workloadLevels(w *comparedWorkload) []levels {
	all := make([]levels, len(c.holdings))
	for _, possible := range [...]bool{true, false} {
		level := Certain
		if possible {
			level = Possible
		}
		c.before.reachedFrom(w.before, possible, func(id int32) { all[id].before = level })
		c.after.reachedFrom(w.after, possible, func(id int32) { all[id].after = level })
	}
	return all
}

// reachedFrom calls a function for each holding that is reached from pods.
func (s *side) reachedFrom(pods []int32, possible bool, found func(int32)) {
	solver := s.solver(possible)
	defer s.release(solver)
	solver.solve(s.podVertices(pods)...)
	for _, v := range solver.reached {
		if id := s.ids[v]; id >= 0 && !solver.isPartOfNode(v) {
			found(id)
		}
	}
}

func (s *side) podVertices(pods []int32) []vertex {
	all := make([]vertex, len(pods))
	for i, pod := range pods {
		all[i] = s.firstPod + vertex(pod)
	}
	return all
}

// workloadOutcome says how a holding comes to be reached from a workload. What cluster-admin owns is no change of its own,
// and the pods of the workload are none.
func (c *comparer) workloadOutcome(w *comparedWorkload, reached []levels, id int32) (outcome, bool) {
	d := delta{admin: reached[c.admin]}
	l, counts := d.counts(c, moved{id: id, levels: reached[id]})
	if !counts || l.after <= l.before || c.isPodOf(w, id) {
		return outcome{}, false
	}
	return outcome{l, c.expectedOfWorkload(w, id)}, true
}

func (c *comparer) isPodOf(w *comparedWorkload, id int32) bool {
	h := c.holdings[id]
	return h.Kind == Pod && slices.ContainsFunc(w.after, func(i int32) bool {
		p := c.after.pods[i]
		return p.Namespace == h.Namespace && p.Name.Name == h.Name
	})
}

// expectedOfWorkload says whether a template names a holding that it may have: its account, whose rights count by
// themselves, or a secret that comes with it.
func (c *comparer) expectedOfWorkload(w *comparedWorkload, id int32) expected {
	h := c.holdings[id]
	for _, i := range w.after {
		p := c.after.pods[i]
		if p.Namespace != h.Namespace {
			continue
		}
		isAccount := h.Kind == ServiceAccount && h.Name == p.ServiceAccount && len(p.Audiences) > 0
		isSecret := h.Kind == Secret && !c.existed[id] && slices.Contains(p.Secrets, h.Name)
		if isAccount || isSecret {
			return ownOfWorkload
		}
	}
	return isFinding
}

func (c *comparer) workloadDifference(w *comparedWorkload, row workloadRow, ids []int32) Difference {
	slices.SortFunc(ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
	f := c.pathFinder(&c.after, &c.before, row.after)
	defer f.release()
	f.find(ids[:1], c.after.podVertices(w.after)...)
	d := Difference{
		Kind: row.kind, Before: row.before, After: row.after, Starts: []Holding{w.holding}, Path: f.pathTo(ids[0]),
		Uses: []Use{{Step: 1, Object: w.holding}}, Expected: row.expected.String(),
	}
	for _, u := range f.uses(ids[0]) {
		if !slices.Contains(d.Uses, u) {
			d.Uses = append(d.Uses, u)
		}
	}
	for _, id := range ids {
		d.Reached = append(d.Reached, c.holdings[id])
	}
	return d
}
