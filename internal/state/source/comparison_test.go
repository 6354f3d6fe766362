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

// isComparison reports whether a request is for a page of a comparison, and not of
// the first list or a probe.
func isComparison(r *http.Request) bool {
	query := r.URL.Query()
	return r.URL.Path == "/api/v1/pods" && query.Get("watch") == "" && query.Get("limit") == fmt.Sprint(pageSize)
}

// newLongList returns an API server with eleven pages of pods, and a live state. Each page of a comparison takes a
// while, and the watch runs meanwhile.
func newLongList(t *testing.T, delay time.Duration) (*stubServer, *Live, *reports) {
	t.Helper()
	s, r := newPodStub(t)
	s.endless = true // a watch that ends may be followed by a list of the reflector
	for i := range 10*pageSize + 1 {
		s.set("pods", boundPod("shop", fmt.Sprintf("pod-%05d", i), "worker", "pull"))
	}
	live := r.follow(t, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = func(r *http.Request) time.Duration {
		if isComparison(r) {
			return delay
		}
		return 0
	}
	return s, live, r
}

// A list may take almost as long as MaxStaleness.
func TestAComparisonMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, live, r := newLongList(t, maxAge/12)
		for range 400 {
			time.Sleep(3 * time.Second)
			requireFresh(t, live, "while a list is read")
		}
		if lines := r.withPrefix(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
	})
}

// Without a whole list, a watch and probes confirm the state for no longer than twice MaxStaleness: they do not show
// that the store was restored.
func TestStateIsTooOldWithoutAList(t *testing.T) {
	for rule, delay := range map[string]time.Duration{
		"each page takes too long": maxAge,
		"all pages take too long":  maxAge / 6,
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, live, _ := newLongList(t, delay)
				time.Sleep(2*maxAge - time.Second)
				requireFresh(t, live, "before the bound")
				time.Sleep(2 * time.Second)
				requireStale(t, live, "after the bound", "pods")
			})
		})
	}
}

// suspended returns the time on a machine that has been suspended: the monotonic
// clock stopped meanwhile, and the wall clock did not. It depends on how package time
// stores both in one value, which the test checks.
func suspended(now time.Time, asleep time.Duration) time.Time {
	const wallSeconds = 30 // the bits below are nanoseconds
	*(*uint64)(unsafe.Pointer(&now)) += uint64(asleep/time.Second) << wallSeconds
	return now
}

// While a machine is suspended, no events arrive, and the monotonic clock stops.
// Afterwards the age of the state follows the wall clock, until the state has been
// listed again.
func TestStateIsTooOldAfterASuspension(t *testing.T) {
	const night = 8 * time.Hour
	began := time.Now() // a bubble has no monotonic clock
	if now := suspended(began, night); now.Sub(began) != 0 || now.Round(0).Sub(began.Round(0)) != night {
		t.Fatalf("package time stores clocks in another way: %v", now)
	}
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		inBubble := time.Now()
		s, r := newPodStub(t)
		live := r.followWith(t, s, LiveOptions{clock: func() time.Time {
			return suspended(began.Add(time.Since(inBubble)), time.Duration(asleep.Load()))
		}})
		time.Sleep(time.Minute)
		requireFresh(t, live, "before")
		asleep.Store(int64(night))
		requireStale(t, live, "after a night", "8h")
		s.set("pods", boundPod("shop", "new", "worker", "pull"))
		requireStale(t, live, "when delayed events start to arrive", "pods")
		time.Sleep(10 * time.Second)
		for range 100 {
			requireFresh(t, live, "listed again")
			time.Sleep(10 * time.Second)
		}
		asleep.Store(0)
		for range 100 {
			requireFresh(t, live, "after the wall clock was set back")
			time.Sleep(10 * time.Second)
		}
	})
}
