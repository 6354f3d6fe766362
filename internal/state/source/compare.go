package source

import (
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// comparison corrects the state of a kind with a list, while the watch runs. The list
// is authoritative for every object without a watch event since the list started. A
// comparison holds only names.
type comparison struct {
	listed map[objectKey]struct{}
	// changed are the objects with a watch event since the list started.
	changed map[objectKey]struct{}
	// different are the objects in which list and state differed, without a watch
	// event since.
	different map[objectKey]struct{}
	// stream is the watch that was open when the list started. If it is nil,
	// differences are expected.
	stream *applyingWatch
	sample *staleness.Sample
}

// isListing reports whether the reflector lists the kind.
func (lw *listWatcher) isListing() bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.listing != nil
}

// startComparison starts a comparison. It returns nil if the kind is already being
// listed or compared.
func (lw *listWatcher) startComparison() *comparison {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.closed || lw.listing != nil || lw.comparison != nil {
		return nil
	}
	lw.comparison = &comparison{
		listed: map[objectKey]struct{}{}, changed: map[objectKey]struct{}{}, different: map[objectKey]struct{}{}, stream: lw.stream,
		sample: lw.live.newSample(lw.endpoint.kind),
	}
	return lw.comparison
}

func (lw *listWatcher) endComparison(m *comparison) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.comparison == m {
		lw.comparison = nil
	}
}

// comparePage applies a page of the list. It returns false when the reflector has
// started to list the kind, which makes the comparison unnecessary.
func (lw *listWatcher) comparePage(m *comparison, page runtime.Object) (current bool, err error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.comparison != m {
		return false, nil
	}
	return true, meta.EachListItem(page, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		key := keyOf(o.GetNamespace(), o.GetName())
		m.listed[key] = struct{}{}
		m.sample.Add(o)
		if _, changed := m.changed[key]; changed || lw.live.state.holdsVersion(lw.endpoint.kind, o) {
			return nil
		}
		m.different[key] = struct{}{}
		_, err = lw.live.state.applyReceived(lw.endpoint.kind, item)
		return lw.skipUnkept(err)
	})
}

// removeUnlisted removes objects that were not listed. It returns false when the
// reflector has started to list the kind.
func (lw *listWatcher) removeUnlisted(m *comparison) bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.comparison != m {
		return false
	}
	k := lw.endpoint.kind
	for _, key := range lw.live.state.keys(k) {
		_, listed := m.listed[key]
		if _, changed := m.changed[key]; listed || changed {
			continue
		}
		m.different[key] = struct{}{}
		lw.live.state.remove(k, key.namespace.Value(), key.name)
	}
	m.listed = nil
	return true
}

// unexplained counts the differences without a watch event, and returns the first by
// name as an example. It returns 0 unless the same watch was open the whole time.
func (lw *listWatcher) unexplained(m *comparison) (n int, example string) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.comparison != m || m.stream == nil || lw.stream != m.stream || len(m.different) == 0 {
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

// recordEvent records a watch event of an object. The lock is held.
func (m *comparison) recordEvent(key objectKey) {
	if m == nil {
		return
	}
	m.changed[objectKey{key.namespace, strings.Clone(key.name)}] = struct{}{}
	delete(m.different, key)
}

// applyingWatch applies the events of a watch before the reflector gets them.
type applyingWatch struct {
	lw     *listWatcher
	server watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once

	// requested is when the watch was requested, timeout is how long the server keeps
	// it open, and resourceVersion is the version of its last event.
	requested       time.Time
	timeout         time.Duration
	resourceVersion string
	// reopened is true if [listWatcher.reopen] ended it.
	reopened bool
}

func (w *applyingWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch. After it returns, no event of this watch is applied: it could
// overwrite newer state.
func (w *applyingWatch) Stop() {
	w.once.Do(func() {
		w.lw.mu.Lock()
		close(w.done)
		w.lw.mu.Unlock()
		w.server.Stop()
	})
}

func (w *applyingWatch) run() {
	defer close(w.events)
	defer w.recordEnd()
	for event := range w.server.ResultChan() {
		event, ok := w.applyUnlessStopped(event)
		if !ok {
			return
		}
		select {
		case w.events <- event:
		case <-w.done:
			return
		}
	}
}

// minLifetime is the fraction of its timeout that a watch normally stays open.
const minLifetime = 0.9

// recordEnd records that the watch has ended, and whether it ended early.
func (w *applyingWatch) recordEnd() {
	w.lw.mu.Lock()
	defer w.lw.mu.Unlock()
	if w.lw.stream == w {
		w.lw.stream = nil
		w.lw.gap = !w.reopened && float64(w.lw.live.ages.Now().Sub(w.requested)) < minLifetime*float64(w.timeout)
	}
}

// applyUnlessStopped returns false when the watch has been stopped.
func (w *applyingWatch) applyUnlessStopped(event watch.Event) (watch.Event, bool) {
	w.lw.mu.Lock()
	defer w.lw.mu.Unlock()
	select {
	case <-w.done:
		return event, false
	default:
	}
	event, err := w.lw.apply(event)
	if err != nil {
		// From here on, events are lost until the kind has been listed again.
		w.lw.live.recordError(w.lw.endpoint.kind, err)
		w.lw.live.setFollowing(w.lw.epoch, w.lw.endpoint.kind, Reading)
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	return event, true
}
