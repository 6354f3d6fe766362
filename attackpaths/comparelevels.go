package attackpaths

import (
	"encoding/binary"
	"maps"
	"slices"
)

// levels say how a holding is reached in both states.
type levels struct{ before, after Certainty }

// outcome is how holdings are reached in both states, and whether it is expected.
type outcome struct {
	levels
	expected
}

// moved is a holding that is reached in another way in one state than in the other.
type moved struct {
	id int32
	outcome
}

// deltaKey is the same for starts for which the same changes, in one group.
type deltaKey struct {
	// of is the workload, or else only the kind of the starts.
	of                Holding
	inBefore, inAfter bool
	// admin is how they reach cluster-admin.
	admin levels
	// controlPlane is true for accounts that the control plane runs with.
	controlPlane bool
	// own are the encoded changes that are not of all starts of the group; empty for those that are.
	own string
}

// delta is what changes alike for several starts of a group.
type delta struct {
	deltaKey
	starts []*start
	moved  []moved
	// except are holdings of which a start is not concerned: it reached them before as it does after,
	// or in another way than the others.
	except map[Holding]map[int32]bool
}

// concerns reports whether a holding changes for a start.
func (d *delta) concerns(s *start, id int32) bool {
	return !slices.Contains(s.self, id) && !d.except[s.holding][id]
}

// search is what the starts of a group reach in one graph, one start after the other.
type search struct {
	*side
	certain, possible *solver
	// base is what they all reach, by id, and own what the last start reaches besides; touched are its ids.
	base, own    []Certainty
	touched      []int32
	credentialOf []int32
}

func (c *comparer) newSearch(s *side, common, starts []vertex) *search {
	r := &search{
		side: s, base: make([]Certainty, len(c.holdings)), own: make([]Certainty, len(c.holdings)), credentialOf: c.credentialOf,
		certain: s.solverBeyond(false, s.certainly(group{nodes: starts, common: common})), possible: s.solverBeyond(true, common),
	}
	r.note(r.base, r.possible.reached, Possible)
	r.note(r.base, r.certain.reached, Certain)
	return r
}

// note notes the holdings that are reached. Who reaches a node has its credential.
func (r *search) note(levels []Certainty, reached []vertex, level Certainty) {
	for _, v := range reached {
		for id := r.ids[v]; id >= 0; id = r.credentialOf[id] {
			levels[id] = max(levels[id], level)
			r.touched = append(r.touched, id)
		}
	}
}

// release lets others use the solvers.
func (r *search) release() {
	r.side.release(r.certain)
	r.side.release(r.possible)
}

// run finds what a start reaches.
func (r *search) run(from []vertex) {
	for _, id := range r.touched {
		r.own[id] = No
	}
	r.touched = r.touched[:0]
	r.possible.solve(from...)
	r.note(r.own, r.possible.reached, Possible)
	r.certain.solve(from...)
	r.note(r.own, r.certain.reached, Certain)
}

func (r *search) level(id int32) Certainty { return max(r.base[id], r.own[id]) }

// groupSearch compares the starts of one group.
type groupSearch struct {
	*comparer
	before, after *search
	// base is what changes for a start that reaches only what all do, and usual the same by id.
	base   []moved
	usual  []levels
	deltas map[deltaKey]*delta
	// least is how all holdings of a kind were reached before.
	least map[kin]Certainty
}

// compareGroup finds what changes for the starts of a group, those alike together.
func (c *comparer) compareGroup(g startGroup) []*delta {
	var before, after []vertex
	for _, s := range g.starts {
		before, after = append(before, s.before...), append(after, s.after...)
	}
	s := &groupSearch{
		comparer: c, usual: make([]levels, len(c.holdings)), deltas: map[deltaKey]*delta{}, least: map[kin]Certainty{},
		before: c.newSearch(&c.before, g.before, before), after: c.newSearch(&c.after, g.after, after),
	}
	defer s.before.release()
	defer s.after.release()
	all := &start{holding: Holding{Kind: g.starts[0].holding.Kind}, before: before, after: after}
	for id := range c.holdings {
		if l := s.levels(int32(id)); l != (levels{}) {
			s.usual[id] = l
			s.base = append(s.base, s.moved(int32(id), all, l))
		}
	}
	for _, from := range g.starts {
		s.before.run(from.before)
		s.after.run(from.after)
		s.compareStart(from)
	}
	return slices.Collect(maps.Values(s.deltas))
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

// compareStart adds a start to those for which the same changes. Workloads are compared for what they reach more.
func (s *groupSearch) compareStart(from *start) {
	clear(s.least)
	var own []moved
	var id []byte
	var except map[int32]bool
	touched := slices.Concat(s.before.touched, s.after.touched)
	slices.Sort(touched)
	for _, h := range slices.Compact(touched) {
		l := s.levels(h)
		if isWorkload(from.holding) && l.after < l.before {
			l = levels{}
		}
		if slices.Contains(from.self, h) || l == s.usual[h] {
			continue
		}
		if s.usual[h] != (levels{}) {
			if except == nil {
				except = map[int32]bool{}
			}
			except[h] = true
		}
		if l != (levels{}) {
			m := s.moved(h, from, l)
			own = append(own, m)
			id = append(binary.AppendUvarint(id, uint64(h)), byte(l.before), byte(l.after), byte(len(m.expected)))
			id = append(id, m.expected...)
		}
	}
	k := deltaKey{
		of: from.holding, inBefore: len(from.before) > 0, inAfter: len(from.after) > 0,
		admin: levels{s.before.level(s.admin), s.after.level(s.admin)}, controlPlane: s.isControlPlane(from),
	}
	if !isWorkload(from.holding) {
		k.of = Holding{Kind: from.holding.Kind}
	}
	s.add(k, s.base, from, except)
	if k.own = string(id); len(own) > 0 {
		s.add(k, own, from, nil)
	}
}

// add puts a start to those for which the same changes.
func (s *groupSearch) add(k deltaKey, changes []moved, from *start, except map[int32]bool) {
	d := s.deltas[k]
	if d == nil {
		d = &delta{deltaKey: k, moved: changes, except: map[Holding]map[int32]bool{}}
		s.deltas[k] = d
	}
	d.starts = append(d.starts, from)
	if except != nil {
		d.except[from.holding] = except
	}
}
