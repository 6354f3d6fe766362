// Package staleness measures the age of a copy of a source, such as an informer's store
// or a file that was read, and says when the copy is too old to answer from.
//
// The age of a copy is the time since its source last confirmed it: with a complete list,
// with an event or a bookmark of a watch, or by being read, if it is a file. An API server
// sends a bookmark about once a minute to each watch that asks for bookmarks. Opening a
// watch does not confirm a copy, because it does not show that the watch will deliver events.
//
// A watch may be silent, or deliver events of another history than the copy's, after the API
// server's store was restored. So each watch ends after a part of the maximum age, and the source
// is listed: see [Followed].
package staleness

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
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
	// cause is why the source cannot be read, or why the copy is wrong.
	cause error
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
func (a *Age) MarkCurrent() { a.confirm(a.deadline.Now()) }

// confirm records that the copy agrees with its source as of a time.
func (a *Age) confirm(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.deadline.Now()
	if a.deadline.Passed(0, now) {
		a.settled = now.Add(settling)
		a.settles.Store(true) // before the deadline, which Check reads first
	}
	if at.After(a.current) {
		a.current = at
	}
	a.cause = nil
	if a.max > 0 {
		a.deadline.Extend(0, a.current, a.current, a.max)
	}
}

// contradict records why the copy is wrong. It must not be used until it is confirmed again.
func (a *Age) contradict(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = err
	if !a.current.IsZero() {
		a.deadline.End(0)
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
	return Since(a.deadline.Now(), a.current), !a.current.IsZero()
}

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
		return &Error{Source: a.source, Age: max(Since(now, a.current), a.max), Max: a.max, Cause: a.cause}
	case now.Before(a.settled):
		return &Error{Source: a.source, Age: a.max, Max: a.max, Cause: errSettling}
	}
	a.settles.Store(false)
	return nil
}

var errSettling = errors.New("the source answers again, and the changes that were missed are being read")

// Deadlines hold the time until which each of several copies may be used. Readers take no
// lock. Only one goroutine at a time may write.
//
// Two clocks count, and the one that shows the greater age decides. The monotonic clock
// cannot be set, but stands still while the machine is suspended. The wall clock can be
// set back.
type Deadlines struct {
	clock     func() time.Time
	monotonic deadlines
	wall      deadlines
}

// deadlines are the deadlines by one clock, as time since begin.
type deadlines struct {
	begin time.Time
	until []atomic.Int64
	// first is the earliest of until.
	first atomic.Int64
}

const (
	// forever is for copies that do not age.
	forever = math.MaxInt64
	// never is for copies that may not be used.
	never = math.MinInt64
)

// NewDeadlines returns the deadlines of n copies. A copy does not age until Extend is called.
func NewDeadlines(n int, clock func() time.Time) *Deadlines {
	d := &Deadlines{clock: clock}
	now := clock()
	d.monotonic.begin, d.wall.begin = now, wall(now)
	d.monotonic.until, d.wall.until = make([]atomic.Int64, n), make([]atomic.Int64, n)
	for i := range n {
		d.Forget(i)
	}
	return d
}

// wall returns a time without its monotonic reading.
func wall(t time.Time) time.Time { return t.Round(0) }

// Since returns how long ago t was. If the clocks differ, the longer time counts.
func Since(now, t time.Time) time.Duration { return max(now.Sub(t), wall(now).Sub(wall(t))) }

// Now returns the current time.
func (d *Deadlines) Now() time.Time { return d.clock() }

// Forget stops a copy from aging, because it holds nothing.
func (d *Deadlines) Forget(i int) {
	d.monotonic.set(i, forever)
	d.wall.set(i, forever)
}

// End marks a copy as unusable.
func (d *Deadlines) End(i int) {
	d.monotonic.set(i, never)
	d.wall.set(i, never)
}

// Extend allows a copy to be used until limit after the earlier of a and b.
func (d *Deadlines) Extend(i int, a, b time.Time, limit time.Duration) {
	d.monotonic.set(i, int64(Earlier(a, b).Add(limit).Sub(d.monotonic.begin)))
	d.wall.set(i, int64(Earlier(wall(a), wall(b)).Add(limit).Sub(d.wall.begin)))
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (d *deadlines) set(i int, until int64) {
	d.until[i].Store(until)
	first := int64(forever)
	for i := range d.until {
		first = min(first, d.until[i].Load())
	}
	d.first.Store(first)
}

// Fresh reports whether every copy may be used.
func (d *Deadlines) Fresh() bool {
	now := d.clock()
	return int64(now.Sub(d.monotonic.begin)) <= d.monotonic.first.Load() && int64(wall(now).Sub(d.wall.begin)) <= d.wall.first.Load()
}

// Passed reports whether the deadline of a copy has passed at a time.
func (d *Deadlines) Passed(i int, at time.Time) bool {
	return int64(at.Sub(d.monotonic.begin)) > d.monotonic.until[i].Load() || int64(wall(at).Sub(d.wall.begin)) > d.wall.until[i].Load()
}
