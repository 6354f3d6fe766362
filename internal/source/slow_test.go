package source

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// comparisons returns whether a request is for a page of a list that is compared: the
// first list and the small questions are not.
func comparisons(r *http.Request) bool {
	query := r.URL.Query()
	return r.URL.Path == "/api/v1/pods" && query.Get("watch") == "" && query.Get("limit") == fmt.Sprint(pageSize)
}

// Of many objects a list takes longer than the state may be old. Meanwhile the watch
// goes on, so the state is not old.
func TestAComparisonMayTakeLong(t *testing.T) {
	for rule, delay := range map[string]time.Duration{
		"longer than the state may be old":    maxAge / 9,
		"longer than an answer is waited for": maxAge,
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := aging(t)
				for i := range 11 * pageSize {
					s.set("pods", boundPod("shop", fmt.Sprintf("pod-%05d", i), "worker", "pull"))
				}
				live := r.follow(t, s)
				s.mu.Lock()
				s.delay = func(r *http.Request) time.Duration {
					if comparisons(r) {
						return delay
					}
					return 0
				}
				s.mu.Unlock()
				for range 400 {
					time.Sleep(3 * time.Second)
					usable(t, live, "while a list is read")
				}
				if lines := r.about(""); len(lines) != 0 {
					t.Errorf("reported: %q", lines)
				}
			})
		})
	}
}

// suspended is a time by the clocks of a machine that has been suspended: the
// monotonic clock stood still meanwhile, and the wall clock did not. It depends on how
// package time keeps both in one value, which the test checks.
func suspended(now time.Time, asleep time.Duration) time.Time {
	const wallSeconds = 30 // the bits below are nanoseconds
	*(*uint64)(unsafe.Pointer(&now)) += uint64(asleep/time.Second) << wallSeconds
	return now
}

// While a machine is suspended nothing comes, and the monotonic clock stands still.
// Afterwards the state is as old as the wall clock says, until it has been read again.
func TestStateIsTooOldAfterASuspension(t *testing.T) {
	const night = 8 * time.Hour
	began := time.Now() // a bubble has no monotonic clock
	if now := suspended(began, night); now.Sub(began) != 0 || now.Round(0).Sub(began.Round(0)) != night {
		t.Fatalf("package time keeps clocks in another way: %v", now)
	}
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		inBubble := time.Now()
		s, r := aging(t)
		live := r.followWith(t, s, LiveOptions{clock: func() time.Time {
			return suspended(began.Add(time.Since(inBubble)), time.Duration(asleep.Load()))
		}})
		time.Sleep(time.Minute)
		usable(t, live, "before")
		asleep.Store(int64(night))
		unusable(t, live, "after a night", "8h")
		s.set("pods", boundPod("shop", "news", "worker", "pull"))
		unusable(t, live, "when news of this night begins to come", "pods")
		time.Sleep(10 * time.Second)
		for range 100 {
			usable(t, live, "read again")
			time.Sleep(10 * time.Second)
		}
		asleep.Store(0)
		for range 100 {
			usable(t, live, "after the wall clock was set back")
			time.Sleep(10 * time.Second)
		}
	})
}
