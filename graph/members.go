package graph

import "sync/atomic"

// memberSet is a set of nodes. Most objects are reached by one node: each node
// has one set with just itself in it, which all these objects share. For more
// than one, it is a hash table by open addressing with a count for each node, at
// most three quarters of the slots used, so a look-up takes a step or two.
//
// Readers take no lock. The writer (one at a time, under Graph.mu) changes
// single slots in place and makes a new set when its size must change.
type memberSet struct {
	sole   *vertex // the only member; there are no slots then
	slots  []atomic.Pointer[vertex]
	counts []uint32 // writer only
	live   int      // members
	used   int      // slots that are not empty: members and graves
}

const minMemberSlots = 4

// grave marks a slot whose member left; look-ups pass over it.
var grave = new(vertex)

func newMemberSet(slots int) *memberSet {
	return &memberSet{slots: make([]atomic.Pointer[vertex], slots), counts: make([]uint32, slots)}
}

// has reports whether the node with this name is a member of a set with slots;
// id is the one that a vertex for that node has.
func (s *memberSet) has(id vertexID, name string) bool {
	mask := uint32(len(s.slots) - 1)
	for i := id.hash() & mask; ; i = (i + 1) & mask {
		v := s.slots[i].Load()
		if v == nil {
			return false
		}
		if v != grave && v.id == id && v.name == name {
			return true
		}
	}
}

// add counts node once more. It returns the set that holds the result, which is
// a larger one when s is full, and whether node is new in it.
func (s *memberSet) add(node *vertex) (*memberSet, bool) {
	mask := uint32(len(s.slots) - 1)
	free := -1
	for i := node.id.hash() & mask; ; i = (i + 1) & mask {
		switch s.slots[i].Load() {
		case node:
			s.counts[i]++
			return s, false
		case grave:
			if free < 0 {
				free = int(i)
			}
		case nil:
			switch {
			case free >= 0:
				s.counts[free] = 1
				s.slots[free].Store(node)
				s.live++
			case 4*(s.used+1) > 3*len(s.slots):
				s = s.resized(slotsFor(s.live + 1))
				s.put(node, 1)
			default:
				s.put(node, 1)
			}
			return s, true
		}
	}
}

// put adds a node that is not in the set, which must have room.
func (s *memberSet) put(node *vertex, count uint32) {
	mask := uint32(len(s.slots) - 1)
	i := node.id.hash() & mask
	for s.slots[i].Load() != nil {
		i = (i + 1) & mask
	}
	s.counts[i] = count
	s.slots[i].Store(node)
	s.live++
	s.used++
}

// remove counts node once less and reports whether it left the set.
func (s *memberSet) remove(node *vertex) bool {
	mask := uint32(len(s.slots) - 1)
	i := node.id.hash() & mask
	for s.slots[i].Load() != node {
		i = (i + 1) & mask
	}
	if s.counts[i]--; s.counts[i] > 0 {
		return false
	}
	s.slots[i].Store(grave)
	s.live--
	return true
}

// shrink returns a smaller set when s is nearly empty, else s.
func (s *memberSet) shrink() *memberSet {
	if len(s.slots) <= minMemberSlots || 8*s.live > len(s.slots) {
		return s
	}
	return s.resized(slotsFor(s.live))
}

func (s *memberSet) resized(slots int) *memberSet {
	t := newMemberSet(slots)
	s.each(t.put)
	return t
}

// each visits the members with their counts; a sole member's is in the vertex.
func (s *memberSet) each(visit func(node *vertex, count uint32)) {
	if s.sole != nil {
		visit(s.sole, 1)
		return
	}
	for i := range s.slots {
		if node := s.slots[i].Load(); node != nil && node != grave {
			visit(node, s.counts[i])
		}
	}
}

// slotsFor returns the power of two that keeps n members at a quarter to a half
// of the slots, so that there is room before the set must grow.
func slotsFor(n int) int {
	slots := minMemberSlots
	for slots < 2*n {
		slots *= 2
	}
	return slots
}
