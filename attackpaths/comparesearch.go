package attackpaths

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// levels say how a holding is reached in both states.
type levels struct{ before, after Certainty }

// outcome is how a holding is reached in both states, and why that is expected; empty if it is not.
type outcome struct {
	levels
	expected string
}

// delta is holdings that change alike for several starts of a group.
type delta struct {
	outcome
	ids    []int32
	starts []*start
	// except are holdings of which a start is not concerned: it reached them before as it does after,
	// or in another way than the others.
	except map[Holding]map[int32]bool
}

// concerns reports whether a holding changes for a start.
func (d *delta) concerns(s *start, id int32) bool {
	return !slices.Contains(s.self, id) && !d.except[s.holding][id]
}

// deltaKey is the same for starts for which the same changes, in one group.
type deltaKey struct {
	// of is the workload, or else only the kind of the starts.
	of Holding
	// admin is how they reach cluster-admin.
	admin levels
	// controlPlane is true for accounts that the control plane runs with.
	controlPlane bool
	// own are the encoded changes that are not of all starts of the group; empty for those that are.
	own string
}

// sideSearch is what the starts of a group reach in one graph, one start after the other.
type sideSearch struct {
	*side
	reach
}

func (s *side) beyond(group []vertex) sideSearch { return sideSearch{s, s.reachBeyond(group)} }

// level says how a holding is reached by the last start.
func (r *sideSearch) level(id int32) Certainty {
	level := No
	for _, v := range r.vertices[id] {
		level = max(level, r.of(v))
	}
	return level
}

// groupSearch compares the starts of one group.
type groupSearch struct {
	*comparer
	before, after sideSearch
	// usual is what changes for a start that reaches only what all do.
	usual  map[int32]outcome
	deltas map[deltaKey][]*delta
	// least is how all holdings of a kind were reached before.
	least map[kin]Certainty
	// given are the vertices that count and to which a brought holding leads.
	given map[int32][]vertex
}

// compareGroup finds what changes for the starts of a group, those alike together.
func (c *comparer) compareGroup(x startGroup) []*delta {
	s := &groupSearch{
		comparer: c, before: c.before.beyond(x.before), after: c.after.beyond(x.after),
		usual: map[int32]outcome{}, deltas: map[deltaKey][]*delta{}, least: map[kin]Certainty{}, given: map[int32][]vertex{},
	}
	defer s.before.release()
	defer s.after.release()
	all := &start{holding: Holding{Kind: x.starts[0].holding.Kind}, before: x.before, after: x.after}
	for id := range c.holdings {
		if l := s.levels(int32(id)); l != (levels{}) {
			s.usual[int32(id)] = s.outcomeOf(int32(id), all, l)
		}
	}
	for _, from := range x.starts {
		s.before.solve(from.before...)
		s.after.solve(from.after...)
		s.compareStart(from)
	}
	return slices.Concat(slices.Collect(maps.Values(s.deltas))...)
}

// levels say how a holding is reached that changes. A node's credential is not a change of its own where the node changes.
func (s *groupSearch) levels(id int32) levels {
	l, node := levels{s.before.level(id), s.after.level(id)}, levels{}
	if of := s.nodeOf[id]; of >= 0 {
		node = levels{s.before.level(of), s.after.level(of)}
	}
	if l.before == l.after || l.after > l.before && node.after == l.after || l.before > l.after && node.before == l.before {
		return levels{}
	}
	return l
}

// beyondCommon lists the holdings that the last start reaches in another way than all starts of the group do.
func (s *groupSearch) beyondCommon() []int32 {
	var all []int32
	for _, side := range [...]*sideSearch{&s.before, &s.after} {
		for _, v := range slices.Concat(side.certain.Reached(), side.possible.Reached()) {
			for id := side.ids[v]; id >= 0; id = s.credentialOf[id] {
				all = append(all, id)
			}
		}
	}
	all = append(all, s.broughtIDs...) // there may be other ways to them
	slices.Sort(all)
	return slices.Compact(all)
}

// compareStart adds a start to those for which the same changes. Workloads are compared for what they reach more.
func (s *groupSearch) compareStart(from *start) {
	clear(s.least)
	k := deltaKey{
		of: from.holding, admin: levels{s.before.level(s.admin), s.after.level(s.admin)}, controlPlane: s.isControlPlane(from),
	}
	if !isWorkload(from.holding) {
		k.of = Holding{Kind: from.holding.Kind}
	}
	own, except, id := map[outcome][]int32{}, map[int32]bool{}, []byte(nil)
	for _, h := range s.beyondCommon() {
		l, usual := s.levels(h), s.usual[h]
		if isWorkload(from.holding) && l.after < l.before {
			l = levels{}
		}
		if l == usual.levels && s.brought[h] == nil || slices.Contains(from.self, h) {
			continue
		}
		o := s.outcomeOf(h, from, l)
		if o == usual {
			continue
		}
		except[h] = usual.levels != levels{}
		if l != (levels{}) {
			id = fmt.Appendf(id, "%d %v ", h, o)
		}
		if o, counts := s.withAdmin(&k, h, o); counts {
			own[o] = append(own[o], h)
		}
	}
	s.add(k, from, except, func() map[outcome][]int32 {
		all := map[outcome][]int32{}
		for h, usual := range s.usual {
			if o, counts := s.withAdmin(&k, h, usual); counts {
				all[o] = append(all[o], h)
			}
		}
		return all
	})
	if k.own = string(id); k.own != "" {
		s.add(k, from, nil, func() map[outcome][]int32 { return own })
	}
}

// add adds a start to the deltas of a key, which are made once.
func (s *groupSearch) add(k deltaKey, from *start, except map[int32]bool, changes func() map[outcome][]int32) {
	deltas, known := s.deltas[k]
	if !known {
		for o, ids := range changes() {
			s.sort(ids)
			deltas = append(deltas, &delta{outcome: o, ids: ids, except: map[Holding]map[int32]bool{}})
		}
		s.deltas[k] = deltas
	}
	for _, d := range deltas {
		d.starts, d.except[from.holding] = append(d.starts, from), except
	}
}

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

func (f *pathFinder) release() { f.solver.Release() }

// find searches until all holdings are reached.
func (f *pathFinder) find(ids []int32, from *start) {
	f.from, f.found = from, make(map[int32]vertex, len(ids))
	for _, id := range ids {
		f.found[id] = none
	}
	open := len(ids)
	f.solver.Stop = func(v vertex) bool {
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
	f.solver.Solve(starts...)
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
	for _, v := range f.solver.Derivation(f.found[id]) {
		how := f.solver.Via(v)
		if f.isNew(how) {
			pending = append(pending, slices.DeleteFunc(f.objectsOf(how, v), func(o Holding) bool {
				return f.options.Changed != nil && !f.options.Changed(o)
			})...)
		}
		if how.Edge.Row != 0 {
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
	parts := f.solver.edges.Parts(how)
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
		return e.To == f.side.other[how.Edge.To] && (e.DependsOn == 0 || how.Edge.DependsOn != 0)
	}
	if how.Join < 0 {
		return !slices.ContainsFunc(f.other.edges.Out[others[0]], alike)
	}
	return !slices.ContainsFunc(f.other.edges.JoinsOf[others[0]], func(place int32) bool {
		j := &f.other.edges.Joins[place]
		return alike(j.Edge) && slices.Equal(slices.Sorted(slices.Values(j.From)), others)
	})
}

// objectsOf are the objects that an edge or join may be because of.
func (f *pathFinder) objectsOf(how via, to vertex) []Holding {
	var all []Holding
	if arg := how.Edge.Arg; arg >= 0 && how.Edge.Row != 0 && isOfPod(how.Edge.Row) {
		all = append(all, usedPod(f.side.pods[arg]))
	} else if arg >= 0 {
		bound := f.side.bindings[arg]
		all = append(all, verdict.Object(bound.Binding), verdict.Object(bound.Role))
	}
	for _, v := range append(slices.Clone(f.solver.edges.Parts(how)), to) {
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
