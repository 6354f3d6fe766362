// Package staleness says how old a copy of a source is, such as an informer's store
// or what was read of a file, and when it is too old to answer from.
//
// The age of a copy is the time since its source was last heard from: a whole list,
// an event or a bookmark of a watch, a file that was read. An API server sends a
// bookmark about once a minute to each watch that asks for bookmarks, so the copy of
// something that never changes is young too, as long as its watch works; where no
// bookmark comes, the source is listed before the copy is too old. That a watch begins
// says nothing about what it will bring, and does not count.
package staleness

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Error says that a copy is too old.
type Error struct {
	// Source is what the copy is of: "ConfigMap kube-system/aws-auth".
	Source   string
	Age, Max time.Duration
	// Cause is why the source cannot be read, if that is known.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	cause := "nothing was heard of it"
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	return fmt.Sprintf("what was read of %s is %s old, and cluster.maxStaleness is %s: %s", e.Source, e.Age.Round(time.Second), e.Max, cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Age is that of one copy. It is safe for concurrent use.
type Age struct {
	source string
	max    time.Duration

	mu sync.Mutex
	// deadline is until when the copy may be used.
	deadline *Deadlines
	// heard is zero until the source was first heard from.
	heard time.Time
	// settled is when what was heard after a copy was too old is all in it.
	settled time.Time
	// listed is set by a list, until a watch begins.
	listed bool
	cause  error
}

// settling is how long after a source is heard from again its copy is too old: what
// happened meanwhile comes event by event, and goes into the copy a moment later.
const settling = 2 * time.Second

// Aged is something whose age is known, as an [Age] has it.
type Aged interface {
	Source() string
	Value() (age time.Duration, known bool)
	Check() error
}

// New returns the age of the copy of a source. Max is how old it may be; 0 for no
// limit. Now may be nil.
func New(source string, max time.Duration, now func() time.Time) *Age {
	if now == nil {
		now = time.Now
	}
	return &Age{source: source, max: max, deadline: NewDeadlines(1, now)}
}

// Source is what the copy is of.
func (a *Age) Source() string { return a.source }

// Heard notes that the copy is what the source is now.
func (a *Age) Heard() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.deadline.Now()
	if a.deadline.Passed(0, now) {
		a.settled = now.Add(settling)
	}
	a.heard, a.cause = now, nil
	if a.max > 0 {
		a.deadline.Extend(0, now, now, a.max)
	}
}

// Failed notes why the source cannot be read.
func (a *Age) Failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = err
}

// Value is the age; false if the source was never heard from.
func (a *Age) Value() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value(), !a.heard.IsZero()
}

// value is called with the lock held.
func (a *Age) value() time.Duration { return Since(a.deadline.Now(), a.heard) }

// Check returns an [*Error] if the copy is too old. A copy that was never made is not
// old: whoever asks it says that it is not there.
func (a *Age) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now := a.deadline.Now(); {
	case a.deadline.Passed(0, now):
		return &Error{Source: a.source, Age: a.value(), Max: a.max, Cause: a.cause}
	case now.Before(a.settled):
		return &Error{Source: a.source, Age: a.max, Max: a.max, Cause: errSettling}
	}
	return nil
}

var errSettling = errors.New("it was heard from again a moment ago, and what happened meanwhile is being read")

// List notes how a list ended. Of a list in pages, the last page counts.
func (a *Age) List(list runtime.Object, err error) {
	if err != nil {
		a.Failed(err)
		return
	}
	if m, err := meta.ListAccessor(list); err == nil && m.GetContinue() == "" {
		a.Heard()
		a.mu.Lock()
		a.listed = true
		a.mu.Unlock()
	}
}

// Watch notes what a watch brings, on its way to whoever reads it. The options are
// those of the watch: if it begins with all objects, it counts from the bookmark on
// that ends them. A watch that brings nothing for three quarters of the limit ends, so
// that a reflector lists: an API server may have nothing to send, not even a bookmark,
// and the list says so.
func (a *Age) Watch(w watch.Interface, opts metav1.ListOptions) watch.Interface {
	events := make(chan watch.Event)
	through := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		counts := opts.SendInitialEvents == nil || !*opts.SendInitialEvents
		silence := time.NewTimer(a.silence())
		defer silence.Stop()
		for {
			select {
			case <-silence.C:
				return
			case event, more := <-w.ResultChan():
				if !more {
					return
				}
				silence.Reset(a.silence())
				counts = a.take(event, counts)
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

// silence is after how long a watch that brings nothing ends.
func (a *Age) silence() time.Duration {
	if a.max <= 0 {
		return math.MaxInt64
	}
	return a.max * 3 / 4
}

// Begin returns an error if a watch may not begin, with which a reflector lists first.
// With a limit every watch begins with a list, also after one that ended in time. So
// the copy is known to be young at once, and not a minute later, with the first
// bookmark. And nothing stays for long that the API server's store does not hold any
// more, because it was restored from a backup: whoever goes on from a resource version
// of another history hears of nothing that was before.
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

// FromStore lets a list, or a watch that begins with all objects, be answered from the
// API server's store. With the version that a reflector asks for, an API server that
// has lost its store answers from its cache, however old that is.
func FromStore(opts metav1.ListOptions) metav1.ListOptions {
	opts.ResourceVersion = ""
	if opts.SendInitialEvents == nil {
		opts.ResourceVersionMatch = ""
	}
	return opts
}

// Follow is [Age.Begin], a client's watch, and [Age.Watch].
func (a *Age) Follow(opts metav1.ListOptions, begin func(metav1.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
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

// take notes one event, and returns whether those that follow count.
func (a *Age) take(event watch.Event, counts bool) bool {
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
		a.Heard()
	}
	return counts
}
