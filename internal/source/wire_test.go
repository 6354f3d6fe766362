package source

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// wire carries requests to a handler without a socket, so that time may be that
// of a bubble of testing/synctest. It can fall silent, as a proxy does that was
// stopped: connections stay open, and nothing comes any more.
type wire struct {
	handler http.Handler

	mu      sync.Mutex
	silent  bool
	refused error         // what requests fail with; nil if they do not
	changed chan struct{} // closed when something changes
}

func newWire(h http.Handler) *wire { return &wire{handler: h, changed: make(chan struct{})} }

// set changes the wire.
func (w *wire) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) silence(silent bool) { w.set(func() { w.silent = silent }) }

func (w *wire) refuse(err error) { w.set(func() { w.refused = err }) }

// wait returns when the condition holds, which is looked at under the lock.
func (w *wire) wait(ctx context.Context, condition func() bool) error {
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
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	refused := w.refused
	w.mu.Unlock()
	if refused != nil {
		return nil, refused
	}
	if err := w.wait(r.Context(), func() bool { return !w.silent }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	a := &answer{wire: w, ctx: ctx, cancel: cancel, header: http.Header{}}
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

// answer is what a handler writes and a client reads; the lock is that of the
// wire.
type answer struct {
	wire   *wire
	ctx    context.Context
	cancel context.CancelFunc
	header http.Header
	code   int
	body   bytes.Buffer
	ended  bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.wire.set(func() {
		if a.code == 0 {
			a.code = code
		}
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.wire.set(func() { a.body.Write(p) })
	return len(p), nil
}

func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

func (a *answer) finish() {
	a.WriteHeader(http.StatusOK)
	a.wire.set(func() { a.ended = true })
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := 0, io.EOF
	if gone := a.wire.wait(a.ctx, func() bool {
		if a.wire.silent || a.body.Len() == 0 && !a.ended {
			return false
		}
		n, err = a.body.Read(p)
		return true
	}); gone != nil {
		return 0, gone
	}
	return n, err
}

func (a *answer) Close() error {
	a.cancel()
	return nil
}
