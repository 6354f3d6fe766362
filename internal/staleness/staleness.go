// Package staleness measures the age of a copy of a source, such as an informer's store
// or a file that was read, and says when the copy is too old to answer from.
//
// The age of a copy is the time since its source last confirmed it: with a complete list,
// with an event or a bookmark of a watch, or by being read, if it is a file. An API server
// sends a bookmark about once a minute to each watch that asks for bookmarks. So the copy
// of a source that never changes stays young while its watch works. If no bookmark
// arrives, the source is listed before the copy is too old. Opening a watch does not
// confirm a copy, because it does not show that the watch will deliver events.
package staleness

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Error says that a copy is too old.
type Error struct {
	// Source names the original: "ConfigMap kube-system/aws-auth".
	Source   string
	Age, Max time.Duration
	// Cause is why the source cannot be read, if that is known.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	cause := "nothing was received from it"
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	return fmt.Sprintf("the copy of %s is %s old, and cluster.maxStaleness is %s: %s",
		e.Source, e.Age.Round(time.Second), e.Max, cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Age measures the age of one copy. It is safe for concurrent use.
type Age struct {
	source string
	max    time.Duration

	// watchLife is how long a watch may last; 0 means no limit.
	watchLife time.Duration
	// deadline is until when the copy may be used.
	deadline *Deadlines
	// settles is true from when a copy that was too old is confirmed until a check after settled.
	settles atomic.Bool

	mu sync.Mutex
	// current is when the source last confirmed the copy; zero if it never did.
	current time.Time
	// settled is when a copy that was too old has received the changes that it missed.
	settled time.Time
	// listed is true after a list, until a watch begins.
	listed bool
	cause  error
}

// settling is how long a copy stays too old after its source answers again. The changes
// that it missed arrive event by event, and reach the copy a moment later.
const settling = 2 * time.Second

// Aged is implemented by [Age].
type Aged interface {
	Source() string
	Value() (age time.Duration, known bool)
	Check() error
}

// New returns the age of the copy of a source. Max is the age at which the copy is too
// old; 0 means no limit. Now may be nil.
func New(source string, max time.Duration, now func() time.Time) *Age {
	if now == nil {
		now = time.Now
	}
	return &Age{source: source, max: max, deadline: NewDeadlines(1, now)}
}

// LimitWatches limits how long watches last, and returns the age. With a maximum age, a list follows
// each watch. So it bounds how long a change is missing that a watch does not deliver. It must be
// called before the first watch.
func (a *Age) LimitWatches(life time.Duration) *Age {
	a.watchLife = life
	return a
}

// Source names the original of the copy.
func (a *Age) Source() string { return a.source }

// MarkCurrent records that the copy agrees with its source now.
func (a *Age) MarkCurrent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.deadline.Now()
	if a.deadline.Passed(0, now) {
		a.settled = now.Add(settling)
		a.settles.Store(true) // before the deadline, which Check reads first
	}
	a.current, a.cause = now, nil
	if a.max > 0 {
		a.deadline.Extend(0, now, now, a.max)
	}
}

// Failed records why the source cannot be read.
func (a *Age) Failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = err
}

// Value returns the age; false if the source has never confirmed the copy.
func (a *Age) Value() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value(), !a.current.IsZero()
}

// value expects the lock to be held.
func (a *Age) value() time.Duration { return Since(a.deadline.Now(), a.current) }

// Check returns an [*Error] if the copy is too old. A copy that was never made is not too
// old: its user reports that it is missing.
//
// It is called for every request, and takes no lock while the copy is young.
func (a *Age) Check() error {
	if a.deadline.Fresh() && !a.settles.Load() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now := a.deadline.Now(); {
	case a.deadline.Passed(0, now):
		return &Error{Source: a.source, Age: a.value(), Max: a.max, Cause: a.cause}
	case now.Before(a.settled):
		return &Error{Source: a.source, Age: a.max, Max: a.max, Cause: errSettling}
	}
	a.settles.Store(false)
	return nil
}

var errSettling = errors.New("the source answers again, and the changes that were missed are being read")

// List records the result of a list request. Of a paginated list, only the last page counts.
func (a *Age) List(list runtime.Object, err error) {
	if err != nil {
		a.Failed(err)
		return
	}
	if m, err := meta.ListAccessor(list); err == nil && m.GetContinue() == "" {
		a.MarkCurrent()
		a.mu.Lock()
		a.listed = true
		a.mu.Unlock()
	}
}

// Watch records the events of a watch and passes them on. The options are those of the
// watch. If the watch begins with all objects, events count from the bookmark that ends
// these. A watch that delivers nothing for three quarters of the limit is ended, so that
// the reflector lists again: an API server may have nothing to send, not even a bookmark,
// and a list confirms that.
func (a *Age) Watch(w watch.Interface, opts metav1.ListOptions) watch.Interface {
	events := make(chan watch.Event)
	through := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		counts := opts.SendInitialEvents == nil || !*opts.SendInitialEvents
		silence := time.NewTimer(a.silence())
		defer silence.Stop()
		life := time.NewTimer(cmp.Or(a.watchLife, math.MaxInt64))
		defer life.Stop()
		for {
			select {
			case <-silence.C:
				return
			case <-life.C:
				return
			case event, more := <-w.ResultChan():
				if !more {
					return
				}
				silence.Reset(a.silence())
				counts = a.recordEvent(event, counts)
				select {
				case events <- event:
				case <-through.StopChan():
					return
				}
			case <-through.StopChan():
				return
			}
		}
	}()
	return through
}

// silence is how long a watch may deliver nothing before it is ended.
func (a *Age) silence() time.Duration {
	if a.max <= 0 {
		return math.MaxInt64
	}
	return a.max * 3 / 4
}

// Begin returns an error if the reflector must list before it watches. With a limit, a list
// comes before every watch, even if the previous watch ended as planned. This has two
// reasons. The list shows at once that the copy is current; the first bookmark comes a
// minute later. And the API server's store may have been restored from a backup: a watch
// from a resource version of the old history does not report the objects that are gone.
func (a *Age) Begin(opts metav1.ListOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	lists := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if a.max > 0 && !lists && !a.listed {
		return apierrors.NewResourceExpired(a.source + " is listed before it is watched again")
	}
	a.listed = false
	return nil
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

// Follow calls [Age.Begin], opens a watch with begin, and returns it through [Age.Watch].
func (a *Age) Follow(
	opts metav1.ListOptions, begin func(metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	if err := a.Begin(opts); err != nil {
		return nil, err
	}
	if opts.SendInitialEvents != nil {
		opts = FromStore(opts)
	}
	w, err := begin(opts)
	if err != nil {
		a.Failed(err)
		return nil, err
	}
	return a.Watch(w, opts), nil
}

// recordEvent records one event, and returns whether the following events count.
func (a *Age) recordEvent(event watch.Event, counts bool) bool {
	switch event.Type {
	case watch.Error:
		a.Failed(apierrors.FromObject(event.Object))
		return counts
	case watch.Bookmark:
		m, err := meta.Accessor(event.Object)
		counts = counts || err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	case watch.Added, watch.Modified, watch.Deleted:
	}
	if counts {
		a.MarkCurrent()
	}
	return counts
}
