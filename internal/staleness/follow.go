package staleness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// ListFunc lists objects, or a page of them.
type ListFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error)

// WatchFunc opens a watch of the same objects.
type WatchFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)

// Followed lists and watches the objects of a copy for one reflector, and compares the copy with lists: see
// [Followed.Watch]. With an age without a limit it does neither more nor less than its functions.
type Followed struct {
	age   *Age
	list  ListFunc
	watch WatchFunc

	mu sync.Mutex
	// versions are the versions of the objects in the copy.
	versions map[objectKey]objectVersion
	// listing is a list that is not complete; nil if there is none.
	listing *listing
	history History
	// open is the watch whose events count; nil if there is none.
	open *stream
	// listed is true after a list, until a watch begins.
	listed bool
	// changed are the objects with an event since a comparison began; nil if none is in progress.
	changed map[objectKey]bool
}

type objectKey struct{ namespace, name string }

// objectVersion identifies one version of one object.
type objectVersion struct {
	uid      types.UID
	resource string
}

// listing is a list of objects.
type listing struct {
	// requested is when it was requested.
	requested time.Time
	versions  map[objectKey]objectVersion
	sample    *Sample
}

// Follow returns the lists and watches of the copy with this age.
func (a *Age) Follow(list ListFunc, watch WatchFunc) *Followed {
	return &Followed{age: a, list: list, watch: watch, versions: map[objectKey]objectVersion{}}
}

// List lists for a reflector, from the API server's store.
func (f *Followed) List(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	requested := f.age.deadline.Now()
	list, err := f.list(ctx, FromStore(opts))
	if err != nil {
		f.age.Failed(err)
		return nil, err
	}
	if opts.Continue == "" {
		f.startListing(requested)
	}
	if err := f.listing.add(list); err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	if m.GetContinue() == "" {
		if err := f.finishListing(ctx, m.GetResourceVersion()); err != nil {
			return nil, err
		}
		f.mu.Lock()
		f.listed = true
		f.mu.Unlock()
	}
	return list, nil
}

// startListing starts a list that was requested at a time.
func (f *Followed) startListing(requested time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listing, f.open = f.newListing(requested), nil
}

func (f *Followed) newListing(requested time.Time) *listing {
	return &listing{requested: requested, versions: map[objectKey]objectVersion{}, sample: NewSample(&f.history)}
}

// add adds the objects of a page.
func (l *listing) add(page runtime.Object) error {
	return eachItem(page, func(m metav1.Object) {
		l.versions[keyOf(m)] = versionOf(m)
		l.sample.Add(m)
	})
}

// finishListing makes the list the content of the copy, if it is what the API server's store has.
func (f *Followed) finishListing(ctx context.Context, version string) error {
	if err := f.verify(ctx, f.listing, version); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.age.markListed(f.listing.requested)
	f.versions, f.listing = f.listing.versions, nil
	return nil
}

// verify returns an error unless a list is what the API server's store has. If it is another one, the copy may not be
// used any more.
func (f *Followed) verify(ctx context.Context, l *listing, version string) error {
	if f.age.max <= 0 {
		return nil
	}
	err := l.sample.Verify(ctx, version, func(ctx context.Context, _ string, opts metav1.ListOptions) (runtime.Object, error) {
		return f.list(ctx, opts)
	})
	if _, other := errors.AsType[*HistoryError](err); other {
		f.mu.Lock()
		f.history.End(version)
		f.mu.Unlock()
		f.age.contradict(err)
	} else if err != nil {
		f.age.Failed(err)
	}
	return err
}

// Watch opens a watch for a reflector, and compares the copy with a list from time to time, until the watch ends. If
// the watch begins with all objects, events count from the bookmark that ends these.
//
// With a limit, it is an error that makes the reflector list if no list came before, even if the previous watch ended as
// planned. This has two reasons. The list shows at once that the copy is current; the first bookmark comes a
// minute later. And the API server's store may have been restored from a backup: a watch from a resource version of the
// old history does not report the objects that are gone.
func (f *Followed) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if !f.mayBegin(initial) {
		return nil, apierrors.NewResourceExpired(f.age.source + " is listed before it is watched again")
	}
	if opts.SendInitialEvents != nil {
		opts = FromStore(opts)
	}
	requested := f.age.deadline.Now()
	from, err := f.watch(ctx, opts)
	if err != nil {
		f.age.Failed(err)
		return nil, err
	}
	events := make(chan watch.Event)
	s := &stream{Followed: f, from: from, events: events, through: watch.NewProxyWatcher(events)}
	f.mu.Lock()
	if f.listing, f.open = nil, s; initial {
		f.listing = f.newListing(requested)
	}
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		s.run(ctx)
	}()
	return s.through, nil
}

// mayBegin reports whether a watch may begin.
func (f *Followed) mayBegin(initial bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := f.listed
	f.listed = false
	return f.age.max <= 0 || initial || listed
}

// FromStore changes the options of a list, or of a watch that begins with all objects, so
// that the API server answers from its store. With the resource version that a reflector
// asks for, an API server that has lost its store answers from its cache, even if that is
// old.
func FromStore(opts metav1.ListOptions) metav1.ListOptions {
	opts.ResourceVersion = ""
	if opts.SendInitialEvents == nil {
		opts.ResourceVersionMatch = ""
	}
	return opts
}

// stream is an open watch.
type stream struct {
	*Followed
	from    watch.Interface
	events  chan watch.Event
	through *watch.ProxyWatcher
}

// run passes events on until the watch ends. It ends a watch that delivers nothing for three quarters of the limit,
// so that the reflector lists again: an API server may have nothing to send, not even a bookmark, and a list confirms
// that. It also ends a watch that does not deliver what a list shows.
func (s *stream) run(ctx context.Context) {
	defer close(s.events)
	defer s.from.Stop()
	differs := make(chan struct{})
	if s.age.max > 0 {
		go s.compareUntil(ctx, differs)
	}
	silence := time.NewTimer(s.age.silence())
	defer silence.Stop()
	life := time.NewTimer(cmp.Or(s.age.watchLife, math.MaxInt64))
	defer life.Stop()
	for {
		select {
		case <-silence.C:
			return
		case <-life.C:
			return
		case <-differs:
			return
		case event, more := <-s.from.ResultChan():
			if !more {
				return
			}
			silence.Reset(s.age.silence())
			err := s.record(ctx, event)
			if err != nil { // the reflector lists again after a pause
				status := apierrors.NewInternalError(err).Status()
				event = watch.Event{Type: watch.Error, Object: &status}
			}
			select {
			case s.events <- event:
			case <-s.through.StopChan():
				return
			}
			if err != nil {
				return
			}
		case <-s.through.StopChan():
			return
		}
	}
}

// record records an event. It returns an error if the watch has to end: its initial events are not what the API server's
// store has, or the reflector lists again.
func (s *stream) record(ctx context.Context, event watch.Event) error {
	if event.Type == watch.Error {
		s.age.Failed(apierrors.FromObject(event.Object))
		return nil
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	if event.Type == watch.Bookmark && s.reading() && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		return s.finishListing(ctx, m.GetResourceVersion())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != s {
		return errReplaced
	}
	if event.Type != watch.Bookmark {
		s.change(event.Type, m)
	}
	if s.listing == nil {
		s.age.MarkCurrent()
	}
	return nil
}

var errReplaced = errors.New("the watch is not the last one")

// change applies the change of an object. The lock is held.
func (s *stream) change(kind watch.EventType, m metav1.Object) {
	to := s.versions
	if s.listing != nil {
		to = s.listing.versions
	}
	if kind == watch.Deleted {
		delete(to, keyOf(m))
		s.history.Deleted(m)
	} else {
		to[keyOf(m)] = versionOf(m)
	}
	switch {
	case s.listing != nil && kind == watch.Deleted:
		s.listing.sample.Remove(m)
	case s.listing != nil:
		s.listing.sample.Add(m)
	case s.changed != nil:
		s.changed[keyOf(m)] = true
	}
}

// reading reports whether a list is not complete.
func (f *Followed) reading() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listing != nil
}

func keyOf(m metav1.Object) objectKey { return objectKey{m.GetNamespace(), m.GetName()} }

func versionOf(m metav1.Object) objectVersion {
	return objectVersion{m.GetUID(), m.GetResourceVersion()}
}

// errDiffers is the cause of the age of a copy that a list contradicts.
var errDiffers = errors.New("a list differs from what the watch delivered: the API server's store was restored or replaced, or the " +
	"watch lost events")
