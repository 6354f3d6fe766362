package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

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
