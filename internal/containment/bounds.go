package containment

import (
	"maps"
	"slices"
)

// The bounds of each resource.
const (
	// maxObjects is the maximum number of objects in use.
	maxObjects = 10_000
	// maxSpec is the maximum size of a spec in bytes, as JSON.
	maxSpec = 64 << 10
	// maxSpecs is the maximum size of all specs in use.
	maxSpecs = 8 << 20
)

// kept are the objects of a resource. Of objects that are out of bounds, the specs are dropped.
type kept struct {
	objects map[string]*object // by name
	// bytes is the size of the specs that are held.
	bytes int
}

func newKept() *kept { return &kept{objects: map[string]*object{}} }

// put adds an object or replaces it.
func (k *kept) put(o *object) {
	k.remove(o.Name)
	k.objects[o.Name] = o
	k.bytes += len(o.spec)
	if k.bytes > 2*maxSpecs { // so that few of the calls sort
		k.drop()
	}
}

func (k *kept) remove(name string) {
	if was := k.objects[name]; was != nil {
		k.bytes -= len(was.spec)
		delete(k.objects, name)
	}
}

// drop drops the specs of objects that are out of bounds.
func (k *kept) drop() {
	for _, r := range rank(k.all()) {
		if r.exceeds && r.spec != nil {
			k.objects[r.Name] = r.withoutSpec()
			k.bytes -= len(r.spec)
		}
	}
}

func (k *kept) all() []*object { return slices.Collect(maps.Values(k.objects)) }

// ranked is an object with its place within the bounds.
type ranked struct {
	*object
	// exceeds is set if older objects use up the bounds.
	exceeds bool
}

// tooLarge reports whether the spec is larger than is ever kept. Then at most an extract of it is.
func (r *ranked) tooLarge() bool { return r.size > maxSpec }

// dropped reports whether something of the spec is to be kept, and is not.
func (o *object) dropped() bool { return o.spec == nil && (o.size <= maxSpec || o.room > 0) }

// rank returns the objects by age. The oldest are within the bounds, up to the first that does not
// fit. An object that is too large by itself takes up the room of its extract. The result depends only on the
// objects, so that all servers agree. A further object never brings another one into the bounds.
func rank(objects []*object) []ranked {
	slices.SortFunc(objects, older)
	all := make([]ranked, len(objects))
	room, full := maxSpecs, false
	for i, o := range objects {
		all[i] = ranked{object: o}
		if o.size > maxSpec && o.room == 0 {
			continue
		}
		full = full || i >= maxObjects || o.room > room
		if all[i].exceeds = full; !full {
			room -= o.room
		}
	}
	return all
}
