package attackpaths

import (
	"encoding/binary"
	"slices"
)

// levels say how a holding is reached in both states.
type levels struct{ before, after Certainty }

// moved is a holding that is reached in another way in one state than in the other.
type moved struct {
	id int32
	levels
	expected
}

// delta is what changes alike for several starts of a group.
type delta struct {
	starts []start
	// admin is how they reach cluster-admin.
	admin levels
	// controlPlane is true for accounts that the control plane runs with.
	controlPlane bool
	moved        []moved
	// except are holdings of which a start is not concerned: it reached them before as it does after,
	// or in another way than the others.
	except map[Holding]map[int32]bool
}

// search is what the starts of a group reach in one graph, one start after the other.
type search struct {
	*side
	certain, possible *solver
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
		side: s, certain: s.solverBeyond(false, certainly), possible: s.solverBeyond(true, common),
		base: make([]Certainty, holdings), own: make([]Certainty, holdings),
	}
	for v, in := range r.possible.base.has {
		if id := s.ids[v]; in && id >= 0 {
			r.base[id] = max(r.base[id], Possible)
		}
	}
	for v, in := range r.certain.base.has {
		if id := s.ids[v]; in && id >= 0 {
			r.base[id] = Certain
		}
	}
	return r
}

// release lets others use the solvers.
func (r *search) release() {
	if r != nil {
		r.side.release(r.certain)
		r.side.release(r.possible)
	}
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

func (r *search) take(s *solver, start vertex, level Certainty) {
	s.solve(start)
	for _, v := range s.reached {
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
	ids    []int32
	// least is how all holdings of a kind were reached before.
	least map[kin]Certainty
}

// compareGroup finds what changes for the starts of a group, those alike together.
func (c *comparer) compareGroup(g startGroup) []*delta {
	before, after := make([]vertex, len(g.starts)), make([]vertex, len(g.starts))
	for i, s := range g.starts {
		before[i], after[i] = s.before, s.after
	}
	s := &groupSearch{
		comparer: c, place: map[int32]int{}, deltas: map[string]*delta{}, least: map[kin]Certainty{},
		before: c.before.newSearch(g.before, before, len(c.holdings)), after: c.after.newSearch(g.after, after, len(c.holdings)),
	}
	defer s.before.release()
	defer s.after.release()
	for id := range c.holdings {
		if l := s.levels(int32(id), (*search).baseLevel); l.before != l.after {
			s.place[int32(id)] = len(s.base)
			s.base = append(s.base, moved{int32(id), l, s.expected(int32(id), -1, l, (*search).baseLevel)})
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
	clear(s.least)
	var own []moved
	var except map[int32]bool
	for _, id := range s.touched() {
		if id == self || s.nodeOf[id] == self {
			continue
		}
		l, usual := s.levels(id, (*search).level), levels{}
		if l.before == l.after {
			l = levels{}
		}
		at, inBase := s.place[id]
		if inBase {
			usual = s.base[at].levels
		}
		if l == usual {
			continue
		}
		if inBase {
			if except == nil {
				except = map[int32]bool{}
			}
			except[id] = true
		}
		if l != (levels{}) {
			own = append(own, moved{id, l, s.expected(id, self, l, (*search).level)})
		}
	}
	admin := levels{s.before.level(s.admin), s.after.level(s.admin)}
	if base := s.add(from, admin, 'b', nil, s.base); except != nil {
		base.except[from.holding] = except
	}
	if len(own) > 0 {
		s.add(from, admin, 'o', own, own)
	}
}

// touched are the holdings that the last start may reach in another way than the others, in order and
// each once. A node comes with its credential.
func (s *groupSearch) touched() []int32 {
	s.ids = append(append(s.ids[:0], s.before.reached()...), s.after.reached()...)
	for _, id := range s.ids {
		if credential := s.credentialOf[id]; credential >= 0 {
			s.ids = append(s.ids, credential)
		}
	}
	slices.Sort(s.ids)
	s.ids = slices.Compact(s.ids)
	return s.ids
}

// add puts a start to those with the same list.
func (s *groupSearch) add(from start, admin levels, part byte, list, changes []moved) *delta {
	controlPlane := s.isControlPlane(from)
	id := []byte{part, byte(admin.before), byte(admin.after), 0}
	if controlPlane {
		id[3] = 1
	}
	for _, m := range list {
		id = binary.AppendUvarint(id, uint64(m.id))
		id = append(id, byte(m.before), byte(m.after), byte(m.expected))
	}
	d := s.deltas[string(id)]
	if d == nil {
		d = &delta{admin: admin, controlPlane: controlPlane, moved: changes, except: map[Holding]map[int32]bool{}}
		s.deltas[string(id)] = d
		s.order = append(s.order, d)
	}
	d.starts = append(d.starts, from)
	return d
}
