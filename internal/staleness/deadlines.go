package staleness

import (
	"math"
	"sync/atomic"
	"time"
)

// Deadlines say until when each of several copies may be used. They are read without a
// lock, and written by one goroutine at a time.
//
// Two clocks count, and the one by which a copy is older: the monotonic one, which nobody
// sets, stands still while the machine is suspended, and the wall clock may be set back.
type Deadlines struct {
	clock     func() time.Time
	monotonic deadlines
	wall      deadlines
}

// deadlines are those by one clock, since begin.
type deadlines struct {
	begin time.Time
	until []atomic.Int64
	// first is the least of until.
	first atomic.Int64
}

const (
	// forever is for copies that do not age.
	forever = math.MaxInt64
	// never is for copies that may not be used.
	never = math.MinInt64
)

// NewDeadlines returns those of n copies, which do not age until they are extended.
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

// wall is a time by the wall clock alone.
func wall(t time.Time) time.Time { return t.Round(0) }

// Since is how long ago a time was, by the clock by which it is longer.
func Since(now, t time.Time) time.Duration { return max(now.Sub(t), wall(now).Sub(wall(t))) }

// Now is the time by which copies age.
func (d *Deadlines) Now() time.Time { return d.clock() }

// Forget lets a copy not age: it holds nothing.
func (d *Deadlines) Forget(i int) {
	d.monotonic.set(i, forever)
	d.wall.set(i, forever)
}

// End says that a copy may not be used any more.
func (d *Deadlines) End(i int) {
	d.monotonic.set(i, never)
	d.wall.set(i, never)
}

// Extend lets a copy be used for so long after the earlier of two times.
func (d *Deadlines) Extend(i int, a, b time.Time, limit time.Duration) {
	d.monotonic.set(i, int64(earlier(a, b).Add(limit).Sub(d.monotonic.begin)))
	d.wall.set(i, int64(earlier(wall(a), wall(b)).Add(limit).Sub(d.wall.begin)))
}

func earlier(a, b time.Time) time.Time {
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

// Fresh reports whether all copies may be used.
func (d *Deadlines) Fresh() bool {
	now := d.clock()
	return int64(now.Sub(d.monotonic.begin)) <= d.monotonic.first.Load() && int64(wall(now).Sub(d.wall.begin)) <= d.wall.first.Load()
}

// Passed reports whether a copy may not be used any more at a time.
func (d *Deadlines) Passed(i int, at time.Time) bool {
	return int64(at.Sub(d.monotonic.begin)) > d.monotonic.until[i].Load() || int64(wall(at).Sub(d.wall.begin)) > d.wall.until[i].Load()
}
