package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func testQueue() *Queue {
	return &Queue{
		small: newLimit(100<<10, 4*smallBody), read: newLimit(10<<20, 4*smallBody), decode: newLimit(4<<20, 4*smallBody),
		leastDecoded: 4 << 20, wait: time.Second,
	}
}

const mb = 1 << 20

// isFree reports whether nothing is admitted.
func (l *limit) isFree() bool {
	free := l.admitted.TryAcquire(l.bytes)
	if free {
		l.admitted.Release(l.bytes)
	}
	return free
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

// However many bodies of any size wait, each is admitted when the memory suffices.
func TestBodiesAreAdmittedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		first, err := q.reserve(t.Context(), 10*mb)
		if err != nil {
			t.Fatal(err)
		}
		var admitted sync.WaitGroup
		for _, size := range []int64{6, 3, 5, 30} {
			admitted.Go(func() {
				p, err := q.reserve(t.Context(), size*mb)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				p.release()
			})
			synctest.Wait()
		}
		first.release()
		admitted.Wait()
		if !q.read.isFree() {
			t.Error("memory is still reserved")
		}
	})
}

// Large bodies are decoded one by one if each counts as much as all may.
func TestTheNumberOfDecodedBodiesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		var decoding, most atomic.Int32
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				p, err := q.reserve(t.Context(), mb)
				if err == nil {
					err = p.decode(t.Context(), func() {
						most.Store(max(most.Load(), decoding.Add(1)))
						time.Sleep(time.Millisecond)
						decoding.Add(-1)
					})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if most.Load() != 1 {
			t.Errorf("%d were decoded at once", most.Load())
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
		if !q.read.waiting.TryAcquire(4 * smallBody) {
			t.Error("some still wait")
		}
		p.release()
		p.release()
		if !q.read.isFree() {
			t.Error("memory is still reserved")
		}
	})
}

// A body that is larger than the limit is admitted alone, or it would never be admitted.
func TestABodyLargerThanTheLimitIsAdmittedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(mb, 8*smallBody)
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
