package graph

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// table finds vertices by kind, namespace and name. Readers take no lock; there is
// one writer at a time (under Graph.mu). It is an open-addressing hash table of
// buckets, one cache line each. Vertices are added and removed atomically, and
// growing publishes a complete new table. The hash is seeded per table, so that names
// cannot be chosen to collide.
type table struct {
	seed    maphash.Seed
	buckets atomic.Pointer[[]bucket]
	live    int // vertices
	used    int // slots that are not empty: vertices and tombstones
}

const bucketSlots = 7

// bucket has a tag for each slot, so that a look-up skips most other vertices without
// reading them. Tags are only a filter: keys are always compared.
type bucket struct {
	tags  atomic.Uint64 // a byte each, the first slot's lowest
	slots [bucketSlots]atomic.Pointer[vertex]
}

// Tags of slots without a vertex; tags of vertices have the high bit. A slot is
// emptied only if its bucket has another empty one. Otherwise it becomes a tombstone,
// because look-ups continue from a bucket that was once full to the next one.
const (
	emptyTag     = 0
	tombstoneTag = 1
)

const (
	lowBits  = 0x01010101010101 // one in each slot's byte
	highBits = 0x80 * lowBits

	minBuckets = 8
)

// equalBytes marks, by its high bit, each slot's byte of tags that is t. Above a
// true mark there may be false ones.
func equalBytes(tags uint64, t uint8) uint64 {
	x := tags ^ uint64(t)*lowBits
	return (x - lowBits) &^ x & highBits
}

// slotOf returns the slot of the lowest mark.
func slotOf(marks uint64) int { return bits.TrailingZeros64(marks) >> 3 }

func (id vertexID) tag() uint8 { return uint8(id>>(32-7)) | 0x80 }

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	buckets := make([]bucket, minBuckets)
	t.buckets.Store(&buckets)
	return t
}

// id returns the id of the vertex with this key.
func (t *table) id(kind Kind, namespace, name string) vertexID {
	h := maphash.String(t.seed, name) + uint64(kind)*0x9e3779b97f4a7c15
	if namespace != "" {
		h ^= maphash.String(t.seed, namespace) * 0xff51afd7ed558ccd
	}
	return newVertexID(kind, h^h>>32)
}

// find returns the vertex with this key, or nil.
func (t *table) find(kind Kind, namespace, name string) *vertex {
	id := t.id(kind, namespace, name)
	buckets := *t.buckets.Load()
	mask := uint32(len(buckets) - 1)
	for i := id.hash() & mask; ; i = (i + 1) & mask {
		b := &buckets[i]
		tags := b.tags.Load()
		for marks := equalBytes(tags, id.tag()); marks != 0; marks &= marks - 1 {
			v := b.slots[slotOf(marks)].Load()
			if v != nil && v.id == id && v.name == name && v.namespace.name == namespace {
				return v
			}
		}
		if equalBytes(tags, emptyTag) != 0 {
			return nil
		}
	}
}

// insert adds a vertex whose key is not in the table.
func (t *table) insert(v *vertex) {
	if buckets := *t.buckets.Load(); 5*(t.used+1) > 4*bucketSlots*len(buckets) {
		t.rebuild()
	}
	t.place(*t.buckets.Load(), v)
	t.live++
}

func (t *table) place(buckets []bucket, v *vertex) {
	mask := uint32(len(buckets) - 1)
	for i := v.id.hash() & mask; ; i = (i + 1) & mask {
		b := &buckets[i]
		tags := b.tags.Load()
		free := equalBytes(tags, tombstoneTag)
		if free == 0 {
			if free = equalBytes(tags, emptyTag); free == 0 {
				continue
			}
			t.used++
		}
		slot := slotOf(free) // the lowest mark, which is a true one
		b.slots[slot].Store(v)
		b.setTag(slot, v.id.tag())
		return
	}
}

// remove removes a vertex that is in the table.
func (t *table) remove(v *vertex) {
	buckets := *t.buckets.Load()
	mask := uint32(len(buckets) - 1)
	for i := v.id.hash() & mask; !t.removeFrom(&buckets[i], v); {
		i = (i + 1) & mask
	}
	t.live--
	if len(buckets) > minBuckets && 8*t.live < bucketSlots*len(buckets) {
		t.rebuild()
	}
}

func (t *table) removeFrom(b *bucket, v *vertex) bool {
	for slot := range b.slots {
		if b.slots[slot].Load() != v {
			continue
		}
		tag := uint8(tombstoneTag)
		if equalBytes(b.tags.Load(), emptyTag) != 0 {
			tag = emptyTag
			t.used--
		}
		b.setTag(slot, tag)
		b.slots[slot].Store(nil)
		return true
	}
	return false
}

func (b *bucket) setTag(slot int, tag uint8) {
	shift := 8 * slot
	b.tags.Store(b.tags.Load()&^(0xff<<shift) | uint64(tag)<<shift)
}

// rebuild publishes a table without tombstones, at most five eighths full.
func (t *table) rebuild() {
	size := minBuckets
	for 8*(t.live+1) > 5*bucketSlots*size {
		size *= 2
	}
	buckets := make([]bucket, size)
	t.used = 0
	t.each(func(v *vertex) { t.place(buckets, v) })
	t.buckets.Store(&buckets)
}

func (t *table) each(visit func(*vertex)) {
	buckets := *t.buckets.Load()
	for i := range buckets {
		for slot := range buckets[i].slots {
			if v := buckets[i].slots[slot].Load(); v != nil {
				visit(v)
			}
		}
	}
}
