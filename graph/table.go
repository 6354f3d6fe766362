package graph

import (
	"hash/maphash"
	"sync/atomic"
)

// table finds vertices by kind, namespace and name. Readers take no lock; there
// is one writer at a time (under Graph.mu). It is an open-addressing hash table
// whose slots are single atomic words: a vertex appears and disappears at once,
// and growing publishes a complete new table. The hash is seeded per table, so
// that names cannot be chosen to collide.
type table struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]slot]
	live  int // vertices
	used  int // slots that are not empty: vertices and graves
}

// slot holds a vertex and, to pass over most others without touching them, its
// hash. The hash is a filter only: keys are always compared.
type slot struct {
	vertex atomic.Pointer[vertex]
	hash   atomic.Uint32
}

const minTableSlots = 64

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	slots := make([]slot, minTableSlots)
	t.slots.Store(&slots)
	return t
}

func (t *table) hash(kind Kind, namespace, name string) uint32 {
	h := maphash.String(t.seed, name) + uint64(kind)*0x9e3779b97f4a7c15
	if namespace != "" {
		h ^= maphash.String(t.seed, namespace) * 0xff51afd7ed558ccd
	}
	return uint32(h ^ h>>32)
}

// find returns the vertex with this key, or nil.
func (t *table) find(kind Kind, namespace, name string) *vertex {
	hash := t.hash(kind, namespace, name)
	slots := *t.slots.Load()
	mask := uint32(len(slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		v := slots[i].vertex.Load()
		if v == nil {
			return nil
		}
		if slots[i].hash.Load() == hash && v != grave &&
			v.kind == kind && v.name == name && v.namespace.name == namespace {
			return v
		}
	}
}

// insert adds a vertex whose key is not in the table.
func (t *table) insert(v *vertex) {
	slots := *t.slots.Load()
	if 4*(t.used+1) > 3*len(slots) {
		t.rebuild()
		slots = *t.slots.Load()
	}
	t.place(slots, v)
	t.live++
}

func (t *table) place(slots []slot, v *vertex) {
	mask := uint32(len(slots) - 1)
	for i := v.hash & mask; ; i = (i + 1) & mask {
		switch slots[i].vertex.Load() {
		case nil:
			t.used++
		case grave:
		default:
			continue
		}
		slots[i].hash.Store(v.hash)
		slots[i].vertex.Store(v)
		return
	}
}

// remove takes out a vertex that is in the table.
func (t *table) remove(v *vertex) {
	slots := *t.slots.Load()
	mask := uint32(len(slots) - 1)
	i := v.hash & mask
	for slots[i].vertex.Load() != v {
		i = (i + 1) & mask
	}
	slots[i].vertex.Store(grave)
	t.live--
	if len(slots) > minTableSlots && 8*t.live < len(slots) {
		t.rebuild()
	}
}

// rebuild publishes a table without graves, between a quarter and a half full.
func (t *table) rebuild() {
	size := minTableSlots
	for size < 2*(t.live+1) {
		size *= 2
	}
	slots := make([]slot, size)
	t.used = 0
	t.each(func(v *vertex) { t.place(slots, v) })
	t.slots.Store(&slots)
}

func (t *table) each(visit func(*vertex)) {
	slots := *t.slots.Load()
	for i := range slots {
		if v := slots[i].vertex.Load(); v != nil && v != grave {
			visit(v)
		}
	}
}
