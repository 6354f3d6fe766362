package attackpaths

import (
	"fmt"
	"maps"
	"slices"
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

// search is what the starts of a group reach in one graph, one start after the other.
type search struct {
	*side
	reach
}

func (s *side) beyond(group []vertex) search { return search{s, s.reachBeyond(group)} }

// level says how a holding is reached by the last start.
func (r *search) level(id int32) Certainty {
	level := No
	for _, v := range r.vertices[id] {
		level = max(level, r.of(v))
	}
	return level
}

// groupSearch compares the starts of one group.
type groupSearch struct {
	*comparer
	before, after search
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
	for _, side := range [...]*search{&s.before, &s.after} {
		for _, v := range slices.Concat(side.certain.reached, side.possible.reached) {
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
