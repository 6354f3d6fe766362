package webhook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func testQueue() *Queue {
	return &Queue{
		small: newLimit(100<<10, math.MaxInt, 4), read: newLimit(10<<20, math.MaxInt, 4), decode: newLimit(4<<20, 1, 4),
		wait: time.Second,
	}
}

const mb = 1 << 20

// inUse returns the bytes and bodies that are admitted, and how many bodies wait.
func (l *limit) inUse() (bytes int64, bodies, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, l.admitted, len(l.waiting)
}

func TestSmallBodiesDoNotWaitForLargeOnes(t *testing.T) {
	q := testQueue()
	if _, err := q.reserve(t.Context(), 10*mb); err != nil {
		t.Fatal(err)
	}
	p, err := q.reserve(t.Context(), smallBody)
	if err != nil {
		t.Fatal(err)
	}
	large := &reservation{queue: q, of: q.read, size: mb}
	decoded := false
	if err := large.decode(t.Context(), func() {
		if err := p.decode(t.Context(), func() { decoded = true }); err != nil {
			t.Error(err)
		}
	}); err != nil || !decoded {
		t.Errorf("decoded: %v, %v", decoded, err)
	}
}

func TestTheSmallestBodyIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		first, err := q.reserve(t.Context(), 10*mb)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int64
		for _, size := range []int64{6, 3, 5, 3} {
			go func() {
				p, err := q.reserve(t.Context(), size*mb)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, size)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				p.release()
			}()
			synctest.Wait()
		}
		admitted := func() []int64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Sorted(slices.Values(order))
		}
		first.release()
		synctest.Wait()
		if got := admitted(); !slices.Equal(got, []int64{3, 3}) {
			t.Errorf("admitted at first: %v, want the two smallest", got)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if bytes, bodies, _ := q.read.inUse(); len(admitted()) != 4 || bytes != 0 || bodies != 0 {
			t.Errorf("admitted in the end: %v, %d bytes are still reserved", admitted(), bytes)
		}
	})
}

func TestWaitsForMemoryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		p, err := q.reserve(t.Context(), 10*mb)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := q.reserve(t.Context(), mb); !errors.Is(err, errWaited) || time.Since(start) != q.wait {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := q.reserve(gone, mb); !errors.Is(err, context.Canceled) {
			t.Errorf("the client is gone: got %v", err)
		}
		for range 4 {
			go func() { _, _ = q.reserve(t.Context(), mb) }()
		}
		synctest.Wait()
		if _, err := q.reserve(t.Context(), mb); !errors.Is(err, errQueueFull) {
			t.Errorf("too many wait: got %v", err)
		}
		time.Sleep(2 * q.wait)
		if _, _, waiting := q.read.inUse(); waiting != 0 {
			t.Errorf("%d still wait", waiting)
		}
		p.release()
		p.release()
		if bytes, _, _ := q.read.inUse(); bytes != 0 {
			t.Errorf("%d bytes are still reserved", bytes)
		}
	})
}

// A body that is larger than the limit is admitted alone, or it would never be admitted.
func TestABodyLargerThanTheLimitIsAdmittedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(mb, 8, 8)
		admitted := make(chan string, 2)
		if err := l.acquire(t.Context(), mb/2, time.Second); err != nil {
			t.Fatal(err)
		}
		go func() { admitted <- fmt.Sprint(l.acquire(t.Context(), 40*mb, time.Second)) }()
		synctest.Wait()
		if len(admitted) > 0 {
			t.Error("it is admitted beside another")
		}
		l.release(mb / 2)
		if got := <-admitted; got != "<nil>" {
			t.Errorf("got %s", got)
		}
		go func() { admitted <- fmt.Sprint(l.acquire(t.Context(), 1, time.Second)) }()
		synctest.Wait()
		if len(admitted) > 0 {
			t.Error("another is admitted beside it")
		}
		l.release(40 * mb)
		<-admitted
	})
}
