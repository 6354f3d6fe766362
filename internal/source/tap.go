package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// tap sits between a reflector and the API server. The reflector knows how to
// list and watch, and when to begin anew; the tap takes the objects into the
// state as they pass by and hands on their names only. So a reflector, which
// holds all objects of a list until the last has come, never holds more than
// names.
type tap struct {
	live     *Live
	epoch    *epoch
	endpoint *endpoint
	stop     context.CancelFunc
	// doubts go to the checker.
	doubts chan doubt

	mu      sync.Mutex
	closed  bool     // nothing is applied any more
	listing *listing // of the list that is under way, if one is
	// asked is when that list was asked for.
	asked time.Time
	// stream is the watch that is open, if one is; gap is true when the one
	// before ended before its time.
	stream *tappedWatch
	gap    bool
	// comparison is the one that is under way, if one is.
	comparison *comparison
}

// errClosed is what a list ends with whose reflector has ended.
var errClosed = errors.New("the list is of no use any more")

// close lets nothing be applied any more.
func (t *tap) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// doubt tells the checker, if that does not know yet.
func (t *tap) doubt(d doubt) {
	select {
	case t.doubts <- d:
	default:
	}
}

// reopen ends the watch that is open; the reflector opens another from where it
// ended.
func (t *tap) reopen() {
	t.mu.Lock()
	stream := t.stream
	if stream == nil || t.listing != nil {
		t.mu.Unlock()
		return
	}
	stream.reopened = true
	t.mu.Unlock()
	stream.server.Stop()
}

// list is a reflector's way to list.
func (t *tap) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	// With "0" servers answer without pages, and with another version maybe from
	// a cache that is old.
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	asked := t.live.ages.Now()
	page, err := t.endpoint.page(ctx, opts)
	if err != nil {
		return nil, t.failed("list", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	t.live.answered(t.epoch, t.endpoint.kind, versionOf(page))
	if opts.Continue == "" {
		t.begin(asked)
	}
	names := &nameList{}
	if m, err := meta.ListAccessor(page); err == nil {
		names.ResourceVersion, names.Continue, names.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	}
	err = meta.EachListItem(page, func(item runtime.Object) error {
		o, err := t.add(item)
		names.Items = append(names.Items, o)
		return err
	})
	if err != nil {
		t.live.following(t.epoch, t.endpoint.kind, Reading)
		return nil, t.failed("list", err)
	}
	if names.Continue == "" {
		t.end()
	}
	return names, nil
}

// watch is a reflector's way to watch. With initial events the watch begins
// with the objects that exist, and a bookmark ends them.
func (t *tap) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial {
		opts.ResourceVersion = "" // the state of now, as from the store
	}
	asked := t.live.ages.Now()
	w, err := t.endpoint.watch(ctx, opts)
	switch {
	case err != nil && initial:
		return nil, err // the reflector lists instead
	case err != nil:
		t.mu.Lock()
		t.gap = true
		t.mu.Unlock()
		return nil, t.failed("watch", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listing = nil; initial {
		t.begin(asked)
	} else {
		t.live.restored(t.endpoint.kind)
		t.live.following(t.epoch, t.endpoint.kind, Followed)
		if t.gap {
			t.doubt(doubtGap)
		}
	}
	t.gap = false
	t.stream = &tappedWatch{
		tap: t, server: w, events: make(chan watch.Event), done: make(chan struct{}), opened: asked, position: opts.ResourceVersion,
	}
	if opts.TimeoutSeconds != nil {
		t.stream.timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	go t.stream.run()
	return t.stream, nil
}

// failed looks at the error of a request. Without the right, or when the
// resource is gone, the reflector is stopped: it would try again every few
// seconds.
func (t *tap) failed(verb string, err error) error {
	k, resource := t.endpoint.kind, t.endpoint.resource.GroupResource()
	switch {
	case apierrors.IsForbidden(err):
		t.live.missing(t.epoch, k, missingReason(verb, resource, err))
		t.stop()
	case apierrors.IsNotFound(err):
		t.live.absent(t.epoch, k)
		t.stop()
	default:
		if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.doubt(doubtVersion)
		}
		t.live.failed(k, fmt.Errorf("%s %s: %w", verb, resource, err))
	}
	return err
}

// begin begins a list that was asked for at a time.
func (t *tap) begin(asked time.Time) {
	t.asked, t.comparison = asked, nil
	t.live.begun(t.epoch, t.endpoint.kind, asked)
	t.listing = &listing{state: t.live.state, kind: t.endpoint.kind, keys: map[objectKey]struct{}{}}
}

// end takes out what is no longer there.
func (t *tap) end() {
	t.listing.end()
	t.live.report(t.endpoint.resource.Resource, int64(t.listing.count), 0, t.listing.count%progressStep)
	t.listing = nil
	if k := t.endpoint.kind; k.describe().rbac {
		t.live.state.rbacRead(k)
	}
	t.live.read(t.epoch, t.endpoint.kind, t.asked)
	t.live.following(t.epoch, t.endpoint.kind, Followed)
	t.live.settled(t.endpoint.kind)
}

// progressStep is after how many objects progress is reported.
const progressStep = 1000

// add takes an object of a list into the state.
func (t *tap) add(o runtime.Object) (runtime.Object, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, err
	}
	named := &objectName{version: m.GetResourceVersion()}
	named.key, err = t.listing.addObject(o)
	err = t.goOn(err)
	if t.listing.count%progressStep == 0 {
		t.live.report(t.endpoint.resource.Resource, int64(t.listing.count), -1, progressStep)
	}
	return named, err
}

// goOn overlooks an object that could not be kept whole, once that is noted: one
// object must not keep news of all others away.
func (t *tap) goOn(err error) error {
	if unkept := new(unkeptError); errors.As(err, &unkept) {
		t.live.failed(t.endpoint.kind, err)
		return nil
	}
	return err
}

// take applies an event and returns what the reflector gets instead.
func (t *tap) take(event watch.Event) (watch.Event, error) {
	t.hear(event)
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		m, err := meta.Accessor(event.Object)
		if err == nil && t.listing != nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			t.end()
			t.live.restored(t.endpoint.kind)
		}
		return event, nil
	default:
		if err := apierrors.FromObject(event.Object); event.Type == watch.Error {
			if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
				t.doubt(doubtVersion)
			}
			t.live.failed(t.endpoint.kind, err)
		}
		return event, nil
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return event, err
	}
	named := &objectName{key: keyOf(m.GetNamespace(), m.GetName()), version: m.GetResourceVersion()}
	t.comparison.told(named.key)
	switch {
	case event.Type == watch.Deleted:
		t.live.state.remove(t.endpoint.kind, m.GetNamespace(), m.GetName())
		if t.listing != nil {
			delete(t.listing.keys, named.key)
		}
	case t.listing != nil:
		_, err = t.add(event.Object)
	default:
		_, err = t.live.state.takeSent(t.endpoint.kind, event.Object)
		err = t.goOn(err)
	}
	return watch.Event{Type: event.Type, Object: named}, err
}

// hear notes the time and the resource version of an event. While a kind is
// being listed, what comes first says nothing of what comes last.
func (t *tap) hear(event watch.Event) {
	m, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		return
	}
	version := m.GetResourceVersion()
	if t.listing != nil {
		t.live.answered(t.epoch, t.endpoint.kind, version)
		return
	}
	if before(version, t.stream.position) {
		t.doubt(doubtVersion)
	} else {
		t.stream.position = version
	}
	t.live.heard(t.epoch, t.endpoint.kind, version)
}

// tappedWatch applies the events of a watch as they pass by.
type tappedWatch struct {
	tap    *tap
	server watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once

	// opened is when the watch was asked for, timeout after how long the server
	// ends it, and position the resource version that it has come to.
	opened   time.Time
	timeout  time.Duration
	position string
	// reopened is true if it was ended from here.
	reopened bool
}

func (w *tappedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch. When it returns, no event is applied any more: what
// comes next may be newer.
func (w *tappedWatch) Stop() {
	w.once.Do(func() {
		w.tap.mu.Lock()
		close(w.done)
		w.tap.mu.Unlock()
		w.server.Stop()
	})
}

func (w *tappedWatch) run() {
	defer close(w.events)
	defer w.ended()
	for event := range w.server.ResultChan() {
		event, ok := w.apply(event)
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

// punctual is the part of its time after which the end of a watch is no
// surprise.
const punctual = 0.9

// ended notes that the watch is not open any more, and whether it ended early.
func (w *tappedWatch) ended() {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	if w.tap.stream == w {
		w.tap.stream = nil
		w.tap.gap = !w.reopened && float64(w.tap.live.ages.Now().Sub(w.opened)) < punctual*float64(w.timeout)
	}
}

// apply returns false when the watch has been stopped.
func (w *tappedWatch) apply(event watch.Event) (watch.Event, bool) {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	select {
	case <-w.done:
		return event, false
	default:
	}
	event, err := w.tap.take(event)
	if err != nil {
		// From here on, news is lost until everything has been read again.
		w.tap.live.failed(w.tap.endpoint.kind, err)
		w.tap.live.following(w.tap.epoch, w.tap.endpoint.kind, Reading)
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	return event, true
}

// objectName stands for an object that the tap has dealt with.
type objectName struct {
	key     objectKey
	version string
}

// GetObjectMeta is what a reflector wants to know of an object.
func (n *objectName) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: n.key.namespace.Value(), Name: n.key.name, ResourceVersion: n.version}
}

// GetObjectKind returns no kind.
func (n *objectName) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the name itself, which never changes.
func (n *objectName) DeepCopyObject() runtime.Object { return n }

// nameList stands for a page of a list.
type nameList struct {
	metav1.ListMeta
	Items []runtime.Object
}

// GetObjectKind returns no kind.
func (l *nameList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the list itself, which never changes.
func (l *nameList) DeepCopyObject() runtime.Object { return l }
