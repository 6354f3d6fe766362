package attackpaths

import (
	"encoding/binary"
	"maps"
	"slices"
)

// levels say how a holding is reached in both states.
type levels struct{ before, after Certainty }

// moved is a holding that is reached in another way in one state than in the other.
type moved struct {
	id int32
	levels
}

// delta is what changes alike for several starts of a group.
type delta struct {
	starts []start
	// admin is how they reach cluster-admin.
	admin levels
	moved []moved
}

// search is what the starts of a group reach in one graph, one start after the other.
type search struct {
	*side
	certain, possible *closure
	// base is what they all reach, by id, and own what the last start reaches besides.
	base, own []Certainty
	touched   []int32
}

// newSearch returns nil where the starts are not in the graph.
func (s *side) newSearch(common, starts []vertex, holdings int) *search {
	if starts[0] == none {
		return nil
	}
	certainly := s.certainly(group{nodes: starts, common: common})
	r := &search{
		side: s, certain: s.newClosure(false, certainly), possible: s.newClosure(true, common),
		base: make([]Certainty, holdings), own: make([]Certainty, holdings),
	}
	for v, in := range r.possible.base {
		if id := s.ids[v]; in && id >= 0 {
			r.base[id] = max(r.base[id], Possible)
		}
	}
	for v, in := range r.certain.base {
		if id := s.ids[v]; in && id >= 0 {
			r.base[id] = Certain
		}
	}
	return r
}

// run finds what a start reaches.
func (r *search) run(v vertex) {
	if r == nil {
		return
	}
	for _, id := range r.touched {
		r.own[id] = No
	}
	r.touched = r.touched[:0]
	r.take(r.possible, v, Possible)
	r.take(r.certain, v, Certain)
}

func (r *search) take(c *closure, start vertex, level Certainty) {
	c.run(none, start)
	for _, v := range c.reached {
		id := r.ids[v]
		if id < 0 {
			continue
		}
		if r.own[id] == No {
			r.touched = append(r.touched, id)
		}
		r.own[id] = max(r.own[id], level)
	}
}

func (r *search) level(id int32) Certainty {
	if r == nil {
		return No
	}
	return max(r.base[id], r.own[id])
}

func (r *search) baseLevel(id int32) Certainty {
	if r == nil {
		return No
	}
	return r.base[id]
}

func (r *search) reached() []int32 {
	if r == nil {
		return nil
	}
	return r.touched
}

// groupSearch compares the starts of one group.
type groupSearch struct {
	*comparer
	before, after *search
	// base is what changes for a start that reaches only what all do, and place where a holding is in
	// it.
	base   []moved
	place  map[int32]int
	deltas map[string]*delta
	order  []*delta
}

// compareGroup finds what changes for the starts of a group, those alike together.
func (c *comparer) compareGroup(g startGroup) []*delta {
	before, after := make([]vertex, len(g.starts)), make([]vertex, len(g.starts))
	for i, s := range g.starts {
		before[i], after[i] = s.before, s.after
	}
	s := &groupSearch{
		comparer: c, place: map[int32]int{}, deltas: map[string]*delta{},
		before: c.before.newSearch(g.before, before, len(c.holdings)), after: c.after.newSearch(g.after, after, len(c.holdings)),
	}
	for id := range c.holdings {
		if l := s.levels(int32(id), (*search).baseLevel); l.before != l.after {
			s.place[int32(id)] = len(s.base)
			s.base = append(s.base, moved{int32(id), l})
		}
	}
	for _, from := range g.starts {
		s.before.run(from.before)
		s.after.run(from.after)
		s.compareStart(from)
	}
	return s.order
}

// levels are those of a holding. Who reaches a node has its credential, which is no change of its own.
func (s *groupSearch) levels(id int32, of func(*search, int32) Certainty) levels {
	l := levels{of(s.before, id), of(s.after, id)}
	node := s.nodeOf[id]
	if node < 0 {
		return l
	}
	n := levels{of(s.before, node), of(s.after, node)}
	l = levels{max(l.before, n.before), max(l.after, n.after)}
	if l.after > l.before && n.after == l.after || l.before > l.after && n.before == l.before {
		return levels{}
	}
	return l
}

// compareStart adds a start to those for which the same changes.
func (s *groupSearch) compareStart(from start) {
	self := s.idOf(from)
	changed := map[int32]levels{}
	note := func(id int32) {
		if id < 0 || id == self || s.nodeOf[id] == self {
			return
		}
		l := s.levels(id, (*search).level)
		if l.before == l.after {
			l = levels{}
		}
		var usual levels
		if at, ok := s.place[id]; ok {
			usual = s.base[at].levels
		}
		if l != usual {
			changed[id] = l
		}
	}
	for _, ids := range [...][]int32{s.before.reached(), s.after.reached()} {
		for _, id := range ids {
			note(id)
			note(s.credentialOf[id])
		}
	}
	var own, others []moved
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if _, ok := s.place[id]; ok {
			others = append(others, moved{id, changed[id]})
		} else {
			own = append(own, moved{id, changed[id]})
		}
	}
	admin := levels{s.before.level(s.admin), s.after.level(s.admin)}
	s.add(from, admin, 'b', others, s.withOthers)
	s.add(from, admin, 'o', own, func(own []moved) []moved { return own })
}

// withOthers is what changes for all, but for some.
func (s *groupSearch) withOthers(others []moved) []moved {
	if len(others) == 0 {
		return s.base
	}
	all := slices.Clone(s.base)
	for _, m := range others {
		all[s.place[m.id]] = m
	}
	return slices.DeleteFunc(all, func(m moved) bool { return m.before == m.after })
}

// add puts a start to those with the same list. What changes is made of the list once.
func (s *groupSearch) add(from start, admin levels, part byte, list []moved, changes func([]moved) []moved) {
	id := []byte{part, byte(admin.before), byte(admin.after)}
	for _, m := range list {
		id = binary.AppendUvarint(id, uint64(m.id))
		id = append(id, byte(m.before), byte(m.after))
	}
	d := s.deltas[string(id)]
	if d == nil {
		d = &delta{admin: admin, moved: changes(list)}
		s.deltas[string(id)] = d
		s.order = append(s.order, d)
	}
	d.starts = append(d.starts, from)
}
