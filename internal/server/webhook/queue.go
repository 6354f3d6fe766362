package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"
)

// Queue limits how many bytes of bodies are in memory at once, and how many are being
// decoded. All handlers of a server share one queue.
//
// Small bodies, of up to 64 KiB, have limits of their own: nearly all requests of API
// servers are small, and none of them waits for a large one. A request that waits for too
// long, or finds too many waiting, is refused with status 429, and the API server retries.
type Queue struct {
	// small and read limit the bytes in memory, and decode the bytes that are being decoded.
	small, read, decode *limit
	// leastDecoded is how much a body counts at least while it is decoded, which limits their number.
	leastDecoded int64
	wait         time.Duration
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
	// A body that is not yet read may fill the window of its stream, 64 KiB, and counts in the
	// window of its HTTP/2 connection, 4 MiB (see the server's limits). The bodies that wait must not
	// fill the window of the connection, because then no body that may be read could arrive. So
	// smallWaiting and largeWaiting limit how much of it they fill, and a body counts as
	// leastWaiting at least, which limits their number.
	smallWaiting, largeWaiting, leastWaiting = 1 << 20, 32 * smallBody, 1 << 10
	// maxWait limits how long a body waits to be read, and again to be decoded. An API
	// server gives up after ten seconds by default.
	maxWait = 4 * time.Second
)

// NewQueue returns a queue with the limits of a server.
func NewQueue() *Queue {
	return &Queue{
		small: newLimit(smallBytes, smallWaiting), read: newLimit(readBytes, largeWaiting), decode: newLimit(decodeBytes, largeWaiting),
		leastDecoded: decodeBytes / max(1, int64(runtime.GOMAXPROCS(0)/2)), wait: maxWait,
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
	size := max(p.size, p.queue.leastDecoded)
	if err := p.queue.decode.acquire(ctx, size, p.queue.wait); err != nil {
		return err
	}
	defer p.queue.decode.release(size)
	f()
	return nil
}

// limit limits the bytes of bodies, and of those that wait.
type limit struct {
	admitted, waiting *semaphore.Weighted
	bytes             int64
}

func newLimit(bytes, waiting int64) *limit {
	return &limit{semaphore.NewWeighted(bytes), semaphore.NewWeighted(waiting), bytes}
}

// acquire waits until the size fits. A size that is larger than the limit is admitted alone.
func (l *limit) acquire(ctx context.Context, size int64, wait time.Duration) error {
	size = min(size, l.bytes)
	if l.admitted.TryAcquire(size) {
		return nil
	}
	waits := min(max(size, leastWaiting), smallBody)
	if !l.waiting.TryAcquire(waits) {
		return errQueueFull
	}
	defer l.waiting.Release(waits)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()
	if l.admitted.Acquire(ctx, size) != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (l *limit) release(size int64) { l.admitted.Release(min(size, l.bytes)) }

// bodyTimeout is the time limit for reading a body, from its reservation on. An API server
// has the whole body when it sends the request.
const bodyTimeout = 10 * time.Second

var errTooLarge = errors.New("the body is too large")

// body is a body while it is read and decoded.
type body struct {
	endpoint    *endpoint
	request     *http.Request
	control     *http.ResponseController
	reservation *reservation
	buffer      *bytes.Buffer
}

// reserve waits until there is memory for the body. A body of unknown size counts as the
// largest small one until it is larger.
func (e *endpoint) reserve(w http.ResponseWriter, r *http.Request) (*body, error) {
	size := r.ContentLength
	if size < 0 {
		size = smallBody
	}
	p, err := e.opts.Queue.reserve(r.Context(), size)
	if err != nil {
		return nil, err
	}
	b := &body{endpoint: e, request: r, control: http.NewResponseController(w), reservation: p}
	if r.ContentLength <= smallBody {
		b.buffer = e.bodies.Get().(*bytes.Buffer)
	} else {
		// bytes.Buffer needs MinRead free bytes to read without growing.
		b.buffer = bytes.NewBuffer(make([]byte, 0, r.ContentLength+bytes.MinRead))
	}
	return b, nil
}

// release releases the memory.
func (b *body) release() {
	if b.buffer.Cap() <= 2*smallBody {
		b.buffer.Reset()
		b.endpoint.bodies.Put(b.buffer)
	}
	b.reservation.release()
}

// read reads the whole body, within a time limit if the connection supports one.
func (b *body) read() error {
	_ = b.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = b.control.SetReadDeadline(time.Time{}) }()
	limit := b.endpoint.opts.MaxBodyBytes
	if b.request.ContentLength < 0 {
		if err := b.readUpTo(min(smallBody, limit)); !errors.Is(err, errTooLarge) || limit <= smallBody {
			return err
		}
		if err := b.enlarge(b.request.Context(), limit); err != nil {
			return err
		}
	}
	return b.readUpTo(limit)
}

// readUpTo reads until the end of the body, or until there are more bytes than the limit.
func (b *body) readUpTo(limit int64) error {
	missing := limit + 1 - int64(b.buffer.Len())
	if _, err := b.buffer.ReadFrom(io.LimitReader(b.request.Body, missing)); err != nil {
		return err
	}
	if int64(b.buffer.Len()) > limit {
		return errTooLarge
	}
	return nil
}

// enlarge waits until there is memory for a large body of unknown size.
func (b *body) enlarge(ctx context.Context, limit int64) error {
	b.reservation.release()
	p, err := b.endpoint.opts.Queue.reserve(ctx, limit)
	if err != nil {
		return err
	}
	b.reservation = p
	return nil
}
