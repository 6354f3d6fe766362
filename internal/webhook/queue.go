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
// decoded. One queue is shared by all handlers of a server.
//
// Small bodies, of up to 64 KiB, have limits of their own: nearly all questions of API
// servers are small, and none of them waits for a large one. Of the large ones that
// wait, the smallest is next. Who has waited for too long, or finds too many waiting,
// is refused with status 429, and API servers try again.
type Queue struct {
	// read limits the bytes that are kept, decode those that are being decoded.
	small, read, decode *limit
	wait                time.Duration
}

const (
	// smallBody is the size in bytes up to which a body is small. Access reviews have
	// about one kilobyte, pods and nodes some tens.
	smallBody = 64 << 10
	// smallBytes is what small bodies may take: 512 at their largest, 32,000 access
	// reviews.
	smallBytes = 32 << 20
	// readBytes is what large bodies may take. One of the largest size fits.
	readBytes = 64 << 20
	// decodeBytes is how much of large bodies is decoded at once, which takes up to
	// about ten times as much memory. A body that is larger is decoded alone.
	decodeBytes = 12 << 20
	// maxWaiting is how many large bodies wait at most. Each that is not yet read takes up
	// the window of a stream, 64 KiB, in the window of its HTTP/2 connection, 4 MiB (see the
	// server's limits). All that wait must leave room there for those that may be read:
	// otherwise what is wanted cannot come because of what has come.
	maxWaiting = 32
	// maxWaitingSmall is how many small bodies wait at most, maxWaitingSmallBytes how much
	// of the windows they take up.
	maxWaitingSmall, maxWaitingSmallBytes = 1024, 1 << 20
	// maxWait is how long a body waits at most to be read, and again to be decoded. An
	// API server gives up after ten seconds by default.
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
	errWaited    = errors.New("other bodies have taken the memory for too long")
)

// place is what a body takes of the queue. It is given back with leave.
type place struct {
	queue *Queue
	of    *limit
	size  int64
}

// enter waits until a body of the size may be read.
func (q *Queue) enter(ctx context.Context, size int64) (*place, error) {
	p := &place{queue: q, of: q.read, size: size}
	if size <= smallBody {
		p.of = q.small
	}
	if err := p.of.take(ctx, size, q.wait); err != nil {
		return nil, err
	}
	return p, nil
}

// leave gives back what the body takes. It may be called twice.
func (p *place) leave() {
	if p.of != nil {
		p.of.give(p.size)
		p.of = nil
	}
}

// decode calls f when it is the body's turn.
func (p *place) decode(ctx context.Context, f func()) error {
	if p.of == p.queue.small {
		f()
		return nil
	}
	if err := p.queue.decode.take(ctx, p.size, p.queue.wait); err != nil {
		return err
	}
	defer p.queue.decode.give(p.size)
	f()
	return nil
}

// limit lets so many bytes, of so many bodies, pass at once.
type limit struct {
	bytes   int64
	bodies  int
	waiters int
	// waitingBytes is how many bytes wait at most, in bodies that are not read.
	waitingBytes int64

	mu sync.Mutex
	// taken and passed are bytes and bodies that have passed and not come back.
	taken  int64
	passed int
	// waiting are sorted by size; of the same size, by their arrival. Wanted is the sum
	// of their sizes.
	waiting []*waiter
	wanted  int64
}

type waiter struct {
	size int64
	// pass is closed when the waiter may pass.
	pass chan struct{}
}

func newLimit(bytes int64, bodies, waiters int) *limit {
	return &limit{bytes: bytes, bodies: bodies, waiters: waiters, waitingBytes: math.MaxInt64}
}

// waitingUpTo limits how many bytes wait.
func (l *limit) waitingUpTo(bytes int64) *limit {
	l.waitingBytes = bytes
	return l
}

// take waits until there is room for the size. What is larger than the limit passes
// alone.
func (l *limit) take(ctx context.Context, size int64, wait time.Duration) error {
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
	case <-w.pass:
		return nil
	case <-timer.C:
		return l.withdraw(w, errWaited)
	case <-ctx.Done():
		return l.withdraw(w, context.Cause(ctx))
	}
}

// withdraw ends a wait, unless the waiter has just been let pass.
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

func (l *limit) give(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= size
	l.passed--
	l.admit()
}

func (l *limit) fits(size int64) bool {
	return l.passed == 0 || l.passed < l.bodies && l.taken+size <= l.bytes
}

func (l *limit) add(size int64) {
	l.taken += size
	l.passed++
}

// admit lets those pass for whom there is room.
func (l *limit) admit() {
	for len(l.waiting) > 0 && l.fits(l.waiting[0].size) {
		next := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.wanted -= next.size
		l.add(next.size)
		close(next.pass)
	}
}
