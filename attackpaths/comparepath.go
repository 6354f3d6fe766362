package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// pathFinder finds the paths from one start to holdings, and what of them the other graph does not
// have. It is used again for one start after the other.
type pathFinder struct {
	*comparer
	side, other *side
	solver      *solver
	// found are the vertices through which holdings are reached, by id.
	found   map[int32]vertex
	changed map[vertex]map[vertex]bool
	set     *edgeSet
	trails  map[vertex]usesTrail
}

func (c *comparer) pathFinder(s, other *side, level Certainty) *pathFinder {
	f := &pathFinder{comparer: c, side: s, other: other, solver: s.solver(level == Possible), set: newEdgeSet(len(other.keys))}
	f.changed = map[vertex]map[vertex]bool{}
	for _, v := range s.changed {
		f.changed[v] = nil
	}
	return f
}

func (f *pathFinder) release() { f.side.release(f.solver) }

// find searches until all holdings are reached.
func (f *pathFinder) find(ids []int32, from ...vertex) {
	f.trails = map[vertex]usesTrail{}
	f.found = make(map[int32]vertex, len(ids))
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
	f.solver.solve(from...)
}

// usesTrail is what a derivation needs: with each step, and after the last one.
type usesTrail struct {
	uses    []Use
	pending []Holding
	steps   int
}

// uses lists the objects that the steps of the path to a holding need and the other graph's edges do
// not have.
func (f *pathFinder) uses(id int32) []Use {
	v := f.found[id]
	if v == none {
		return nil
	}
	t := f.usesOf(v)
	return appendUses(t.uses, max(t.steps, 1), t.pending)
}

// usesOf follows a derivation. What many vertices are reached through is followed once.
func (f *pathFinder) usesOf(v vertex) usesTrail {
	how := f.solver.via[v]
	switch {
	case how.join >= 0:
		var t usesTrail
		for _, w := range f.solver.derivation(v) {
			if how := f.solver.via[w]; how.join >= 0 || how.from != none {
				t = f.extend(t, how, w)
			}
		}
		return t
	case how.from == none:
		return usesTrail{}
	}
	before, ok := f.trails[how.from]
	if !ok {
		before = f.usesOf(how.from)
		f.trails[how.from] = before
	}
	return f.extend(before, how, v)
}

// extend adds a vertex to a trail, which is not changed.
func (f *pathFinder) extend(t usesTrail, how via, v vertex) usesTrail {
	var objects []Holding
	if f.isNew(how) {
		for _, o := range f.objectsOf(how, v) {
			if f.options.Changed == nil || f.options.Changed(o) {
				objects = append(objects, o)
			}
		}
	}
	if how.edge.row == 0 {
		t.pending = append(slices.Clip(t.pending), objects...)
		return t
	}
	t.steps++
	t.uses = appendUses(appendUses(t.uses, t.steps, t.pending), t.steps, objects)
	t.pending = nil
	return t
}

func appendUses(all []Use, step int, objects []Holding) []Use {
	all = slices.Clip(all)
	for _, o := range objects {
		if u := (Use{step, o}); !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all
}

// isNew reports whether the other graph does not have the edge or join through which a vertex is
// reached.
func (f *pathFinder) isNew(how via) bool {
	if how.join >= 0 {
		return f.side.newJoins[how.join]
	}
	targets, changed := f.changed[how.from]
	if changed && targets == nil {
		targets = map[vertex]bool{}
		for _, e := range f.side.newEdges(how.from, f.other, f.set) {
			targets[e.to] = true
		}
		f.changed[how.from] = targets
	}
	return targets[how.edge.to]
}

// objectsOf are the objects that an edge or join may be because of.
func (f *pathFinder) objectsOf(how via, to vertex) []Holding {
	var all []Holding
	if arg := how.edge.arg; arg >= 0 && how.edge.row != 0 && how.edge.row.ofPod() {
		all = append(all, usedPod(f.side.pods[arg]))
	} else if arg >= 0 {
		bound := f.side.bindings[arg]
		all = append(all, objectOf(bound.Binding), objectOf(bound.Role))
	}
	from := []vertex{how.from}
	if how.join >= 0 {
		from = f.side.joins[how.join].from
	}
	for _, v := range append(slices.Clone(from), to) {
		all = append(all, f.objectsOfVertex(v)...)
	}
	return all
}

func (f *pathFinder) objectsOfVertex(v vertex) []Holding {
	k := f.side.keys[v]
	var all []Holding
	switch k.kind {
	case isRole:
		all = append(all, objectOf(f.side.roles[k.role].Role))
	case isPod:
		if i := int(v - f.side.firstPod); i >= 0 && i < len(f.side.pods) {
			all = append(all, usedPod(f.side.pods[i]))
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
