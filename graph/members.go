package graph

import "sync/atomic"

// memberSet is a set of nodes. Most objects are reached by one node: each node has
// one set that contains only itself, which all these objects share. For more nodes,
// the set is an open-addressing hash table with a count for each node. At most three
// quarters of the slots are used, so a look-up takes one or two steps.
//
// Readers take no lock. The writer (one at a time, under Graph.mu) changes
// single slots in place and makes a new set when its size must change.
type memberSet struct {
	sole   *vertex // the only member; there are no slots then
	slots  []atomic.Pointer[vertex]
	counts []uint32 // writer only
	live   uint32   // members
	used   uint32   // slots that are not empty: members and tombstones
}

const minMemberSlots = 4

// tombstone marks a slot whose member was removed; look-ups skip it.
var tombstone = new(vertex)

func newMemberSet(slots int) *memberSet {
	return &memberSet{slots: make([]atomic.Pointer[vertex], slots), counts: make([]uint32, slots)}
}

// has reports whether the node with this name is a member of a set with slots; id is
// the id of the node's vertex.
func (s *memberSet) has(id vertexID, name string) bool {
	mask := uint32(len(s.slots) - 1)
	for i := id.hash() & mask; ; i = (i + 1) & mask {
		v := s.slots[i].Load()
		if v == nil {
			return false
		}
		if v != tombstone && v.id == id && v.name == name {
			return true
		}
	}
}

// add increments the count of node. It returns the resulting set, which is a larger
// one if s was full, and whether node is new in it.
func (s *memberSet) add(node *vertex) (*memberSet, bool) {
	mask := uint32(len(s.slots) - 1)
	free := -1
	for i := node.id.hash() & mask; ; i = (i + 1) & mask {
		switch s.slots[i].Load() {
		case node:
			s.counts[i]++
			return s, false
		case tombstone:
			if free < 0 {
				free = int(i)
			}
		case nil:
			switch {
			case free >= 0:
				s.counts[free] = 1
				s.slots[free].Store(node)
				s.live++
			case 4*(int(s.used)+1) > 3*len(s.slots):
				s = s.resized(slotsFor(int(s.live) + 1))
				s.put(node, 1)
			default:
				s.put(node, 1)
			}
			return s, true
		}
	}
}

// put adds a node that is not in the set. The set must have a free slot.
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

// remove decrements the count of node and reports whether the set no longer contains
// it.
func (s *memberSet) remove(node *vertex) bool {
	mask := uint32(len(s.slots) - 1)
	i := node.id.hash() & mask
	for s.slots[i].Load() != node {
		i = (i + 1) & mask
	}
	if s.counts[i]--; s.counts[i] > 0 {
		return false
	}
	s.slots[i].Store(tombstone)
	s.live--
	return true
}

// shrink returns a smaller set when s is nearly empty, else s.
func (s *memberSet) shrink() *memberSet {
	if len(s.slots) <= minMemberSlots || 8*int(s.live) > len(s.slots) {
		return s
	}
	return s.resized(slotsFor(int(s.live)))
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
		if node := s.slots[i].Load(); node != nil && node != tombstone {
			visit(node, s.counts[i])
		}
	}
}

// slotsFor returns the power of two for which n members use a quarter to a half of
// the slots, so that the set does not grow again soon.
func slotsFor(n int) int {
	slots := minMemberSlots
	for slots < 2*n {
		slots *= 2
	}
	return slots
}
