package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a body may take to arrive, once there is room for it. An API
// server has the whole of it when it calls.
const bodyTimeout = 10 * time.Second

var errTooLarge = errors.New("the body is too large")

// body is a body while it is read and decoded.
type body struct {
	endpoint *endpoint
	request  *http.Request
	control  *http.ResponseController
	place    *place
	buffer   *bytes.Buffer
}

// enter waits for room for the body. One whose size is not told counts as the largest of
// the small ones until it is larger.
func (e *endpoint) enter(w http.ResponseWriter, r *http.Request) (*body, error) {
	size := r.ContentLength
	if size < 0 {
		size = smallBody
	}
	p, err := e.opts.Queue.enter(r.Context(), size)
	if err != nil {
		return nil, err
	}
	b := &body{endpoint: e, request: r, control: http.NewResponseController(w), place: p}
	if r.ContentLength <= smallBody {
		b.buffer = e.bodies.Get().(*bytes.Buffer)
	} else {
		// The size that a reader of a buffer wants to be free makes it not grow.
		b.buffer = bytes.NewBuffer(make([]byte, 0, r.ContentLength+bytes.MinRead))
	}
	return b, nil
}

// leave makes room for others.
func (b *body) leave() {
	if b.buffer.Cap() <= 2*smallBody {
		b.buffer.Reset()
		b.endpoint.bodies.Put(b.buffer)
	}
	b.place.leave()
}

// read takes the whole body in. A time limit holds for it, if the connection has one.
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

// readUpTo reads until the end, or until there is more than so many bytes.
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

// enlarge waits for room for a body whose size is not known.
func (b *body) enlarge(ctx context.Context, limit int64) error {
	b.place.leave()
	p, err := b.endpoint.opts.Queue.enter(ctx, limit)
	if err != nil {
		return err
	}
	b.place = p
	return nil
}
