package staleness_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// suspended returns the time on a machine that was suspended: its monotonic clock stood
// still, its wall clock did not. It depends on how package time stores both clocks in one
// value. The test checks that.
func suspended(now time.Time, asleep time.Duration) time.Time {
	const wallSeconds = 30 // the bits below are nanoseconds
	*(*uint64)(unsafe.Pointer(&now)) += uint64(asleep/time.Second) << wallSeconds
	return now
}

func TestTheGreaterAgeOfTheTwoClocksCounts(t *testing.T) {
	const limit, hour = 2 * time.Minute, time.Hour
	began := time.Now()
	if now := suspended(began, hour); now.Sub(began) != 0 || now.Round(0).Sub(began.Round(0)) != hour {
		t.Fatalf("package time stores the clocks in another way: %v", now)
	}
	for _, tc := range []struct {
		rule   string
		now    time.Time
		passed bool
		age    time.Duration
	}{
		{"at the limit", began.Add(limit), false, limit},
		{"after the limit", began.Add(limit + 1), true, limit + 1},
		{"the machine was suspended", suspended(began, hour), true, hour},
		{"the wall clock set back, within the limit", suspended(began.Add(time.Minute), -hour), false, time.Minute},
		{"the wall clock set back, after the limit", suspended(began.Add(time.Hour), -hour), true, hour},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			now := began
			d := staleness.NewDeadlines(2, func() time.Time { return now })
			d.Extend(1, began.Add(time.Minute), began, limit)
			now = tc.now
			if d.Passed(1, now) != tc.passed || d.Fresh() == tc.passed {
				t.Errorf("passed is %v, fresh %v; want passed %v", d.Passed(1, now), d.Fresh(), tc.passed)
			}
			if d.Passed(0, now) {
				t.Error("a copy that does not age is too old")
			}
			if age := staleness.Since(now, began); age != tc.age {
				t.Errorf("the age is %v, want %v", age, tc.age)
			}
		})
	}
}

func TestEndAndForget(t *testing.T) {
	began := time.Now()
	d := staleness.NewDeadlines(2, func() time.Time { return began })
	d.End(1)
	if !d.Passed(1, began) || d.Passed(0, began) || d.Fresh() {
		t.Error("a copy may be used after its end")
	}
	d.Forget(1)
	if d.Passed(1, began.AddDate(100, 0, 0)) || !d.Fresh() {
		t.Error("a copy that holds nothing is too old")
	}
}
