package containment

import "slices"

// The bounds of each resource.
const (
	// maxObjects is the maximum number of objects in use.
	maxObjects = 10_000
	// maxSpec is the maximum size of a spec in bytes, as JSON.
	maxSpec = 64 << 10
	// maxSpecs is the maximum size of all specs in use.
	maxSpecs = 8 << 20
)

// ranked is an object with its place within the bounds.
type ranked struct {
	*object
	// exceeds is set if older objects use up the bounds.
	exceeds bool
}

// dropped reports whether a spec should be kept, in part or as a whole, and is not. The next list has it again.
func (o *object) dropped() bool { return o.spec == nil && o.room > 0 }

// rank returns the objects by age. The oldest are within the bounds, up to the first that does not
// fit. An object that is too large by itself takes up the room of what is kept of it. The result depends only on the
// objects, so that all servers agree. A further object never brings another one into the bounds.
func rank(objects []*object) []ranked {
	slices.SortFunc(objects, older)
	all := make([]ranked, len(objects))
	room, full := maxSpecs, false
	for i, o := range objects {
		full = full || i >= maxObjects || o.room > room
		if all[i] = (ranked{o, full}); !full {
			room -= o.room
		}
	}
	return all
}

// bounded returns the objects by age, without the specs of objects out of bounds.
func bounded(objects []*object) []*object {
	for i, r := range rank(objects) {
		if r.exceeds {
			objects[i] = r.withoutSpec()
		}
	}
	return objects
}
