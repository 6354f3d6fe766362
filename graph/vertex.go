package graph

import (
	"math"
	"sync/atomic"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// vertex is one object. Its key never changes, so that readers may compare it
// without a lock; a vertex that leaves the graph is never used again.
//
// Who reaches it is read without a lock, from many when that is set, else from
// one:
//   - objects that pods name (secret, configmap, claim …): the nodes of those
//     pods, each with a count of the links that lead there;
//   - objects that name their node (pod, attachment, slice, request): one is
//     that node;
//   - a persistent volume: one is its claim, whose nodes are the volume's.
//
// What readers touch comes first, to lie in one cache line.
type vertex struct {
	name      string
	namespace *namespace
	one       atomic.Pointer[vertex]
	many      atomic.Pointer[memberSet]
	kind      Kind
	hash      uint32
	count     uint32 // links behind one; guarded by Graph.mu, as are the links
	links     []link
}

// droppedCount marks a vertex that left the graph.
const droppedCount = math.MaxUint32

func (v *vertex) dropped() bool { return v.count == droppedCount }

// link joins an object that names others (the holder) to one that it names
// (the target). Each side keeps one: other is the vertex at the far end and at
// the position of the link there, which makes removal independent of fan-out.
type link struct {
	other *vertex
	at    uint32
	place place // in the holder
}

// namespace is shared by the vertices in it.
type namespace struct {
	name string
	refs int
}

func (v *vertex) object() verdict.Object {
	return verdict.Object{Kind: v.kind.String(), Namespace: v.namespace.name, Name: v.name}
}

// reachedBy reports whether the node reaches v. It takes no lock.
func (v *vertex) reachedBy(node *vertex) bool {
	if v.kind != PersistentVolume {
		return v.has(node)
	}
	for {
		claim := v.one.Load()
		if claim == nil {
			return false
		}
		// Look again: had the volume moved to another claim in between, the
		// answer would be one of two different states.
		if reached := claim.has(node); v.one.Load() == claim {
			return reached
		}
	}
}

func (v *vertex) has(node *vertex) bool {
	if set := v.many.Load(); set != nil {
		return set.has(node)
	}
	return v.one.Load() == node
}

// gain counts one more link between v and the node and reports whether it is
// the first.
func (v *vertex) gain(node *vertex) bool {
	if set := v.many.Load(); set != nil {
		grown, first := set.add(node)
		if grown != set {
			v.many.Store(grown)
		}
		return first
	}
	switch v.one.Load() {
	case node:
		v.count++
		return false
	case nil:
		v.count = 1
		v.one.Store(node)
		return true
	}
	set := newMemberSet(minMemberSlots)
	set.put(v.one.Load(), v.count)
	set.put(node, 1)
	v.many.Store(set)
	return true
}

// lose counts one link less and reports whether it was the last.
func (v *vertex) lose(node *vertex) bool {
	set := v.many.Load()
	if set == nil {
		if v.count--; v.count > 0 {
			return false
		}
		v.one.Store(nil)
		return true
	}
	if !set.remove(node) {
		return false
	}
	if set.live > 1 {
		if shrunk := set.shrink(); shrunk != set {
			v.many.Store(shrunk)
		}
		return true
	}
	// Readers that still see the set find the same member in it.
	set.each(func(last *vertex, count uint32) {
		v.count = count
		v.one.Store(last)
	})
	v.many.Store(nil)
	return true
}

// eachNode visits the nodes that reach v, in no particular order.
func (v *vertex) eachNode(visit func(node *vertex)) {
	if v.kind == PersistentVolume {
		if v = v.one.Load(); v == nil {
			return
		}
	}
	if set := v.many.Load(); set != nil {
		set.each(func(node *vertex, _ uint32) { visit(node) })
	} else if node := v.one.Load(); node != nil {
		visit(node)
	}
}

// nodeCount is the number of nodes that reach v.
func (v *vertex) nodeCount() int {
	n := 0
	if v.kind == PersistentVolume {
		if v = v.one.Load(); v == nil {
			return 0
		}
	}
	if set := v.many.Load(); set != nil {
		n = set.live
	} else if v.one.Load() != nil {
		n = 1
	}
	return n
}
