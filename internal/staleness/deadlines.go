package staleness

import (
	"math"
	"sync/atomic"
	"time"
)

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

// Fresh reports whether every copy may be used.
func (d *Deadlines) Fresh() bool {
	now := d.clock()
	return int64(now.Sub(d.monotonic.begin)) <= d.monotonic.first.Load() && int64(wall(now).Sub(d.wall.begin)) <= d.wall.first.Load()
}

// Passed reports whether the deadline of a copy has passed at a time.
func (d *Deadlines) Passed(i int, at time.Time) bool {
	return int64(at.Sub(d.monotonic.begin)) > d.monotonic.until[i].Load() || int64(wall(at).Sub(d.wall.begin)) > d.wall.until[i].Load()
}
