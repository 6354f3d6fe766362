package webhook

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Queue limits how many bytes of bodies are in memory at once, and how many are being
// decoded. All handlers of a server share one queue.
//
// Small bodies, of up to 64 KiB, have limits of their own: nearly all requests of API
// servers are small, and none of them waits for a large one. Of the large bodies that
// wait, the smallest is next. A request that waits for too long, or finds too many
// waiting, is refused with status 429, and the API server retries.
type Queue struct {
	// small and read limit the bytes in memory, decode those that are being decoded.
	small, read, decode *limit
	wait                time.Duration
}

const (
	// smallBody is the size in bytes up to which a body is small. Access reviews have
	// about one kilobyte, pods and nodes some tens.
	smallBody = 64 << 10
	// smallBytes is the memory for small bodies: 512 of the largest, or 32,000 access
	// reviews.
	smallBytes = 32 << 20
	// readBytes is the memory for large bodies. One body of the maximum size fits.
	readBytes = 64 << 20
	// decodeBytes limits the large bodies that are decoded at once, which takes up to
	// about ten times their size in memory. A larger body is decoded alone.
	decodeBytes = 12 << 20
	// maxWaiting limits how many large bodies wait. A body that is not yet read may fill
	// the window of its stream, 64 KiB, and counts in the window of its HTTP/2 connection,
	// 4 MiB (see the server's limits). The bodies that wait must not fill the window of the
	// connection, because then no body that may be read could arrive.
	maxWaiting = 32
	// maxWaitingSmall limits how many small bodies wait, and maxWaitingSmallBytes how much
	// of the windows they fill.
	maxWaitingSmall, maxWaitingSmallBytes = 1024, 1 << 20
	// maxWait limits how long a body waits to be read, and again to be decoded. An API
	// server gives up after ten seconds by default.
	maxWait = 4 * time.Second
)

// NewQueue returns a queue with the limits of a server.
func NewQueue() *Queue {
	return &Queue{
		small:  newLimit(smallBytes, math.MaxInt, maxWaitingSmall).waitingUpTo(maxWaitingSmallBytes),
		read:   newLimit(readBytes, math.MaxInt, maxWaiting),
		decode: newLimit(decodeBytes, max(1, runtime.GOMAXPROCS(0)/2), maxWaiting),
		wait:   maxWait,
	}
}

var (
	errQueueFull = errors.New("too many requests with bodies are waiting")
	errWaited    = errors.New("timed out waiting for memory for the request body")
)

// reservation is the memory that is reserved for one body. It must be released.
type reservation struct {
	queue *Queue
	of    *limit
	size  int64
}

// reserve waits until a body of the size may be read.
func (q *Queue) reserve(ctx context.Context, size int64) (*reservation, error) {
	p := &reservation{queue: q, of: q.read, size: size}
	if size <= smallBody {
		p.of = q.small
	}
	if err := p.of.acquire(ctx, size, q.wait); err != nil {
		return nil, err
	}
	return p, nil
}

// release releases the memory. It may be called twice.
func (p *reservation) release() {
	if p.of != nil {
		p.of.release(p.size)
		p.of = nil
	}
}

// decode calls f when the body may be decoded.
func (p *reservation) decode(ctx context.Context, f func()) error {
	if p.of == p.queue.small {
		f()
		return nil
	}
	if err := p.queue.decode.acquire(ctx, p.size, p.queue.wait); err != nil {
		return err
	}
	defer p.queue.decode.release(p.size)
	f()
	return nil
}

// limit is a semaphore for bytes and bodies.
type limit struct {
	bytes   int64
	bodies  int
	waiters int
	// waitingBytes limits the sum of the sizes of the bodies that wait.
	waitingBytes int64

	mu sync.Mutex
	// used and admitted are the bytes and bodies that have been acquired and not released.
	used     int64
	admitted int
	// waiting is sorted by size, then by arrival. wanted is the sum of the sizes.
	waiting []*waiter
	wanted  int64
}

type waiter struct {
	size int64
	// admitted is closed when the waiter is admitted.
	admitted chan struct{}
}

func newLimit(bytes int64, bodies, waiters int) *limit {
	return &limit{bytes: bytes, bodies: bodies, waiters: waiters, waitingBytes: math.MaxInt64}
}

// waitingUpTo limits the bytes that wait.
func (l *limit) waitingUpTo(bytes int64) *limit {
	l.waitingBytes = bytes
	return l
}

// acquire waits until the size fits. A size that is larger than the limit is admitted alone.
func (l *limit) acquire(ctx context.Context, size int64, wait time.Duration) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.fits(size) {
		l.add(size)
		l.mu.Unlock()
		return nil
	}
	if len(l.waiting) >= l.waiters || l.wanted+size > l.waitingBytes {
		l.mu.Unlock()
		return errQueueFull
	}
	w := &waiter{size, make(chan struct{})}
	l.wanted += size
	at, _ := slices.BinarySearchFunc(l.waiting, size, func(w *waiter, size int64) int {
		return cmp.Or(cmp.Compare(w.size, size), -1)
	})
	l.waiting = slices.Insert(l.waiting, at, w)
	l.admit()
	l.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return nil
	case <-timer.C:
		return l.withdraw(w, errWaited)
	case <-ctx.Done():
		return l.withdraw(w, context.Cause(ctx))
	}
}

// withdraw ends a wait, unless the waiter has just been admitted.
func (l *limit) withdraw(w *waiter, why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return nil
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.wanted -= w.size
	l.admit()
	return why
}

func (l *limit) release(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= size
	l.admitted--
	l.admit()
}

func (l *limit) fits(size int64) bool {
	return l.admitted == 0 || l.admitted < l.bodies && l.used+size <= l.bytes
}

func (l *limit) add(size int64) {
	l.used += size
	l.admitted++
}

// admit admits waiters while they fit.
func (l *limit) admit() {
	for len(l.waiting) > 0 && l.fits(l.waiting[0].size) {
		next := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.wanted -= next.size
		l.add(next.size)
		close(next.admitted)
	}
}
