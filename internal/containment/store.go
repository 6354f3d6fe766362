package containment

import (
	"bytes"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// store receives the objects of a reflector.
type store struct {
	// now is the clock.
	now func() time.Time
	// changed is called after each change that may matter.
	changed func()

	mu       sync.Mutex
	kept     *kept
	replaced bool
	// changes counts objects that appeared, disappeared or got another spec; last is when.
	changes uint64
	last    time.Time
	// wanted is the status that the object should have; see status.go.
	wanted func(*object) (status, bool)
	// passed is set if an object was put since the last snapshot.
	passed bool
}

var _ cache.ReflectorStore = (*store)(nil)

// Add implements cache.ReflectorStore.
func (s *store) Add(added any) error {
	s.put(added.(*object))
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(updated any) error { return s.Add(updated) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(deleted any) error {
	s.mu.Lock()
	s.kept.remove(deleted.(*object).Name)
	s.count(1)
	s.mu.Unlock()
	s.changed()
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(all []any, _ string) error {
	next := newKept()
	for _, o := range all {
		next.put(o.(*object))
	}
	s.mu.Lock()
	s.count(differences(s.kept.objects, next.objects))
	s.kept, s.replaced = next, true
	s.mu.Unlock()
	s.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (*store) Resync() error { return nil }

func (s *store) put(o *object) {
	s.mu.Lock()
	was := s.kept.objects[o.Name]
	s.kept.put(o)
	same := was != nil && sameSpec(was, o)
	if !same {
		s.count(1)
	}
	s.passed = true
	s.mu.Unlock()
	if !same || !s.asWanted(o) {
		s.changed()
	}
}

// compiled says that the statuses are wanted that follow from the last snapshot. What came since was compared with
// earlier ones.
func (s *store) compiled() {
	s.mu.Lock()
	passed := s.passed
	s.mu.Unlock()
	if passed {
		s.changed()
	}
}

// asWanted reports whether an object has the status that it should have, so that the change that
// wrote the status needs no other one.
func (s *store) asWanted(o *object) bool {
	to, known := s.wanted(o)
	return known && o.status.says(to)
}

// count expects the lock to be held.
func (s *store) count(changes int) {
	if changes > 0 {
		s.changes += uint64(changes)
		s.last = s.now()
	}
}

// sameSpec reports whether two versions of an object mean the same. A store that was restored may
// have another spec under the same generation.
func sameSpec(a, b *object) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.size == b.size &&
		(a.spec == nil || b.spec == nil || bytes.Equal(a.spec, b.spec)) && a.CreationTimestamp.Equal(&b.CreationTimestamp)
}

func differences(was, is map[string]*object) (n int) {
	for name, o := range is {
		if old := was[name]; old == nil || !sameSpec(old, o) {
			n++
		}
	}
	for name := range was {
		if is[name] == nil {
			n++
		}
	}
	return n
}

// snapshot returns the objects by age; false before the first list.
func (s *store) snapshot() ([]ranked, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = false
	return rank(s.kept.all()), s.replaced
}

// current returns the object with a name; nil if there is none.
func (s *store) current(name string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.objects[name]
}

// restore puts back the spec of an object. It returns false if the object has changed since the
// spec was dropped.
func (s *store) restore(read *object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.kept.objects[read.Name]
	if is == nil || is.UID != read.UID || is.ResourceVersion != read.ResourceVersion {
		return false
	}
	s.kept.put(read)
	return true
}

// counted returns the number of changes, and the time of the last one.
func (s *store) counted() (uint64, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes, s.last
}
