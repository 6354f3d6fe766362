package graph

import (
	"math"
	"sync/atomic"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// vertex is one object. Its key never changes, so that readers may compare it without
// a lock; a vertex that was removed from the graph is never reused. It fills one
// cache line.
//
// members are the nodes that reach it; readers load them without a lock:
//   - for a node, the set of just that node;
//   - for an object that names its node (pod, attachment, slice, request), the
//     set of that node;
//   - for an object that pods name (secret, configmap, claim …), the nodes of
//     those pods;
//   - for a persistent volume, the set of its claim.
type vertex struct {
	name      string
	namespace *namespace
	members   atomic.Pointer[memberSet]
	links     []link // guarded by Graph.mu, as is count
	id        vertexID
	count     uint32 // links behind the one member of members; of a node, its position in Graph.nodes
}

// vertexID holds the kind of a vertex in its low bits, and in the other bits a part
// of the hash of its key.
type vertexID uint32

const kindBits = 4

func newVertexID(kind Kind, hash uint64) vertexID {
	return vertexID(hash)<<kindBits | vertexID(kind)
}

func (id vertexID) kind() Kind   { return Kind(id & (1<<kindBits - 1)) }
func (id vertexID) hash() uint32 { return uint32(id >> kindBits) }

func (v *vertex) kind() Kind { return v.id.kind() }

// droppedCount marks a vertex that was removed from the graph.
const droppedCount = math.MaxUint32

func (v *vertex) dropped() bool { return v.count == droppedCount }

// link connects an object that names others (the holder) with one that it names (the
// target). Each side has one: other is the vertex at the far end and at the position
// of the link there, which makes removal independent of fan-out.
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
	return verdict.Object{Kind: v.kind().String(), Namespace: v.namespace.name, Name: v.name}
}

// setMembers replaces the set of nodes that reach v. The volumes bound to a
// claim share its set.
func (v *vertex) setMembers(set *memberSet) {
	v.members.Store(set)
	if v.kind() == PersistentVolumeClaim {
		eachVolume(v, func(volume *vertex) { volume.members.Store(set) })
	}
}

// gain counts one more link between v and the node and reports whether it is
// the first.
func (v *vertex) gain(node *vertex) (first bool) {
	set := v.members.Load()
	switch {
	case set == nil:
		v.count = 1
		v.setMembers(node.members.Load())
		return true
	case set.sole == node:
		v.count++
		return false
	}
	grown := set
	if set.sole != nil {
		grown = newMemberSet(minMemberSlots)
		grown.put(set.sole, v.count)
		grown.put(node, 1)
		first = true
	} else {
		grown, first = set.add(node)
	}
	if grown != set {
		v.setMembers(grown)
	}
	return first
}

// lose counts one link less and reports whether it was the last.
func (v *vertex) lose(node *vertex) (last bool) {
	set := v.members.Load()
	switch {
	case set.sole != nil:
		if v.count--; v.count > 0 {
			return false
		}
		v.setMembers(nil)
		return true
	case !set.remove(node):
		return false
	case set.live == 1:
		// Readers that still see the set find the same member in it.
		set.each(func(left *vertex, count uint32) {
			v.count = count
			v.setMembers(left.members.Load())
		})
		return true
	}
	if shrunk := set.shrink(); shrunk != set {
		v.setMembers(shrunk)
	}
	return true
}

// eachNode visits the nodes that reach v, in no particular order.
func (v *vertex) eachNode(visit func(node *vertex)) {
	if set := v.members.Load(); set != nil {
		set.each(func(node *vertex, _ uint32) { visit(node) })
	}
}

// nodeCount is the number of nodes that reach v.
func (v *vertex) nodeCount() int {
	set := v.members.Load()
	switch {
	case set == nil:
		return 0
	case set.sole != nil:
		return 1
	}
	return int(set.live)
}
