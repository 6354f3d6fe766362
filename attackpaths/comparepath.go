package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// pathFinder finds the paths from one start to holdings, and what of them the other graph does not
// have. It is used again for one start after the other.
type pathFinder struct {
	*comparer
	side, other *side
	solver      *solver
	from        *start
	// found are the vertices through which holdings are reached, by id.
	found map[int32]vertex
}

// pathFinder returns one for the state in which holdings are reached with more certainty. It is to be released.
func (c *comparer) pathFinder(l levels) *pathFinder {
	f := &pathFinder{comparer: c, side: &c.after, other: &c.before}
	if l.before > l.after {
		f.side, f.other = f.other, f.side
	}
	f.solver = f.side.solver(max(l.before, l.after) == Possible)
	return f
}

func (f *pathFinder) release() { f.side.release(f.solver) }

// find searches until all holdings are reached.
func (f *pathFinder) find(ids []int32, from *start) {
	f.from, f.found = from, make(map[int32]vertex, len(ids))
	for _, id := range ids {
		f.found[id] = none
	}
	open := len(ids)
	f.solver.stop = func(v vertex) bool {
		if known, wanted := f.found[f.side.ids[v]]; wanted && known == none && !f.solver.isPartOfNode(v) {
			f.found[f.side.ids[v]] = v
			open--
		}
		return open == 0
	}
	starts := from.after
	if f.side == &f.before {
		starts = from.before
	}
	f.solver.solve(starts...)
}

// uses lists the objects that the steps of the path to a holding need and that the other graph's edges do
// not have. A workload is one itself.
func (f *pathFinder) uses(id int32) []Use {
	var all []Use
	add := func(step int, objects ...Holding) {
		for _, o := range objects {
			if u := (Use{step, o}); !slices.Contains(all, u) {
				all = append(all, u)
			}
		}
	}
	if isWorkload(f.from.holding) {
		add(1, f.from.holding)
	}
	if f.found[id] == none {
		return all
	}
	step := 0
	var pending []Holding
	for _, v := range f.solver.derivation(f.found[id]) {
		how := f.solver.via[v]
		if f.isNew(how) {
			pending = append(pending, slices.DeleteFunc(f.objectsOf(how, v), func(o Holding) bool {
				return f.options.Changed != nil && !f.options.Changed(o)
			})...)
		}
		if how.edge.row != 0 {
			step++
			add(step, pending...)
			pending = nil
		}
	}
	add(max(step, 1), pending...)
	return all
}

// isNew reports whether the other graph does not have the edge or join through which a vertex is
// reached, or only if something else allows it.
func (f *pathFinder) isNew(how via) bool {
	parts := f.solver.parts(how)
	if len(parts) == 0 {
		return false
	}
	others := make([]vertex, len(parts))
	for i, v := range parts {
		others[i] = f.side.other[v]
	}
	slices.Sort(others)
	if others[0] == none || !f.side.differ[parts[0]] {
		return others[0] == none
	}
	alike := func(e edge) bool {
		return e.to == f.side.other[how.edge.to] && (e.dependsOn == 0 || how.edge.dependsOn != 0)
	}
	if how.join < 0 {
		return !slices.ContainsFunc(f.other.out[others[0]], alike)
	}
	return !slices.ContainsFunc(f.other.joinsOf[others[0]], func(place int32) bool {
		j := &f.other.joins[place]
		return alike(j.edge) && slices.Equal(slices.Sorted(slices.Values(j.from)), others)
	})
}

// objectsOf are the objects that an edge or join may be because of.
func (f *pathFinder) objectsOf(how via, to vertex) []Holding {
	var all []Holding
	if arg := how.edge.arg; arg >= 0 && how.edge.row != 0 && how.edge.row.ofPod() {
		all = append(all, usedPod(f.side.pods[arg]))
	} else if arg >= 0 {
		bound := f.side.bindings[arg]
		all = append(all, verdict.Object(bound.Binding), verdict.Object(bound.Role))
	}
	for _, v := range append(slices.Clone(f.solver.parts(how)), to) {
		all = append(all, f.objectsOfVertex(v)...)
	}
	return all
}

func (f *pathFinder) objectsOfVertex(v vertex) []Holding {
	k := f.side.keys[v]
	var all []Holding
	switch k.kind {
	case isRole:
		all = append(all, verdict.Object(f.side.roles[k.role].Role))
	case isPod:
		if v >= f.side.firstPod && int(v-f.side.firstPod) < len(f.side.pods) {
			all = append(all, usedPod(f.side.podOf(v)))
		}
	case isNode, isServiceAccount, isAssociated, isSecret, isNamespace:
		h, _ := k.holding()
		all = append(all, h)
	case isNodeUser:
		all = append(all, Holding{Kind: Node, Name: strings.TrimPrefix(k.name, nodeidentity.UserPrefix)})
	}
	if k.namespace != "" && k.kind != isFact || k.kind == isFact && k.name == privilegedPods {
		all = append(all, Holding{Kind: Namespace, Name: k.namespace})
	}
	return all
}

// usedPod is the object that a pod is made from, or the pod.
func usedPod(p *inventory.Pod) verdict.Object {
	if p.Workload.Resource == "cronjobs" {
		return verdict.Object{Kind: "CronJob", Namespace: p.Namespace, Name: p.Workload.Name}
	}
	return templateObject(p)
}
