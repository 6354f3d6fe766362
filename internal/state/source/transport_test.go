package source

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// transport passes requests to a handler without a socket, so that it works in a
// bubble of testing/synctest. It can become silent: connections stay open, and
// nothing arrives.
type transport struct {
	handler http.Handler

	mu      sync.Mutex
	silent  bool
	failure error         // the error of all requests; nil for none
	changed chan struct{} // closed when something changes
}

func newTransport(h http.Handler) *transport {
	return &transport{handler: h, changed: make(chan struct{})}
}

// set changes the transport and wakes all waiters.
func (w *transport) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *transport) setSilent(silent bool) { w.set(func() { w.silent = silent }) }

func (w *transport) failWith(err error) { w.set(func() { w.failure = err }) }

// wait returns when the condition holds. The condition is called under the lock.
func (w *transport) wait(ctx context.Context, condition func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := condition(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (w *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	refused := w.failure
	w.mu.Unlock()
	if refused != nil {
		return nil, refused
	}
	if err := w.wait(r.Context(), func() bool { return !w.silent }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	a := &response{transport: w, ctx: ctx, cancel: cancel, header: http.Header{}}
	go func() {
		defer a.finish()
		w.handler.ServeHTTP(a, r.WithContext(ctx))
	}()
	if err := w.wait(ctx, func() bool { return a.code != 0 && !w.silent }); err != nil {
		cancel()
		return nil, err
	}
	return &http.Response{
		StatusCode: a.code, Header: a.header, Body: a, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// response is written by a handler and read by a client. The transport's lock
// protects it.
type response struct {
	transport *transport
	ctx       context.Context
	cancel    context.CancelFunc
	header    http.Header
	code      int
	body      bytes.Buffer
	ended     bool
}

func (a *response) Header() http.Header { return a.header }

func (a *response) WriteHeader(code int) {
	a.transport.set(func() {
		if a.code == 0 {
			a.code = code
		}
	})
}

func (a *response) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.transport.set(func() { a.body.Write(p) })
	return len(p), nil
}

func (a *response) Flush() { a.WriteHeader(http.StatusOK) }

func (a *response) finish() {
	a.WriteHeader(http.StatusOK)
	a.transport.set(func() { a.ended = true })
}

func (a *response) Read(p []byte) (int, error) {
	n, err := 0, io.EOF
	if gone := a.transport.wait(a.ctx, func() bool {
		if a.transport.silent || a.body.Len() == 0 && !a.ended {
			return false
		}
		n, err = a.body.Read(p)
		return true
	}); gone != nil {
		return 0, gone
	}
	return n, err
}

func (a *response) Close() error {
	a.cancel()
	return nil
}
