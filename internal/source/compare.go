package source

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// comparison puts the state of a kind right with a list, while its watch goes
// on. The list is right about all that the watch does not touch meanwhile. It
// holds names only.
type comparison struct {
	listed map[objectKey]struct{}
	// touched is what the watch has told of since the list began.
	touched map[objectKey]struct{}
	// different is what the list showed otherwise than the state, and of which
	// the watch has not told since.
	different map[objectKey]struct{}
	// stream is the watch that was open all the time; nil if there was none, so
	// that differences were to be expected.
	stream *tappedWatch
}

// isListing reports whether the reflector lists the kind.
func (t *tap) isListing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listing != nil
}

// compare begins a comparison; nil if the kind is being listed or compared.
func (t *tap) compare() *comparison {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.listing != nil || t.comparison != nil {
		return nil
	}
	t.comparison = &comparison{
		listed: map[objectKey]struct{}{}, touched: map[objectKey]struct{}{}, different: map[objectKey]struct{}{}, stream: t.stream,
	}
	return t.comparison
}

// compared ends a comparison.
func (t *tap) compared(m *comparison) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.comparison == m {
		t.comparison = nil
	}
}

// comparePage takes a page of the list; it returns false when the kind is listed
// meanwhile, which makes the comparison needless.
func (t *tap) comparePage(m *comparison, page runtime.Object) (goOn bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.comparison != m {
		return false, nil
	}
	return true, meta.EachListItem(page, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		key := keyOf(o.GetNamespace(), o.GetName())
		m.listed[key] = struct{}{}
		if _, told := m.touched[key]; told || t.live.state.holdsVersion(t.endpoint.kind, o) {
			return nil
		}
		m.different[key] = struct{}{}
		_, err = t.live.state.takeSent(t.endpoint.kind, item)
		return t.goOn(err)
	})
}

// compareEnd takes out what was not listed. It returns false when the kind was
// listed meanwhile.
func (t *tap) compareEnd(m *comparison) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.comparison != m {
		return false
	}
	k := t.endpoint.kind
	for _, key := range t.live.state.keys(k) {
		_, listed := m.listed[key]
		if _, told := m.touched[key]; listed || told {
			continue
		}
		m.different[key] = struct{}{}
		t.live.state.remove(k, key.namespace.Value(), key.name)
	}
	m.listed = nil
	return true
}

// unexplained is how many differences the watch has not told of, with the first
// by name as an example. There are none when no watch was open all the time.
func (t *tap) unexplained(m *comparison) (n int, example string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.comparison != m || m.stream == nil || t.stream != m.stream || len(m.different) == 0 {
		return 0, ""
	}
	first := objectKey{}
	for key := range m.different {
		if first.name == "" || byName(key, first) < 0 {
			first = key
		}
	}
	example = first.name
	if namespace := first.namespace.Value(); namespace != "" {
		example = namespace + "/" + example
	}
	return len(m.different), example
}

func byName(a, b objectKey) int {
	return slices.Compare([]string{a.namespace.Value(), a.name}, []string{b.namespace.Value(), b.name})
}

// told notes that the watch told of an object. The lock is held.
func (m *comparison) told(key objectKey) {
	if m == nil {
		return
	}
	m.touched[objectKey{key.namespace, strings.Clone(key.name)}] = struct{}{}
	delete(m.different, key)
}
