package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// silenceError is the error of a request to which the API server sent nothing for too
// long. It is a timeout for callers.
type silenceError struct {
	what  string
	limit time.Duration
}

// Error implements error.
func (e *silenceError) Error() string {
	return fmt.Sprintf("the API server is silent: %s within %s", e.what, e.limit)
}

// Timeout makes it a net.Error.
func (e *silenceError) Timeout() bool { return true }

// Temporary makes it a net.Error.
func (e *silenceError) Temporary() bool { return true }

// Unwrap makes it a context.DeadlineExceeded.
func (e *silenceError) Unwrap() error { return context.DeadlineExceeded }

// deadline ends a request when its time limit is exceeded.
type deadline struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration

	mu   sync.Mutex
	over error
}

// withDeadline returns the context of a request with a time limit.
func withDeadline(ctx context.Context, limit time.Duration, what string) (context.Context, *deadline) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &deadline{cancel: cancel, limit: limit}
	p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{what, limit}) })
	return ctx, p
}

// end ends the request with err, if it has not ended yet.
func (p *deadline) end(err error) {
	p.mu.Lock()
	if p.over == nil {
		p.over = err
	}
	p.mu.Unlock()
	p.cancel(err)
}

// done releases the timer and the context.
func (p *deadline) done() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}

// explain returns the error with which the request was ended, if it was, and else
// err.
func (p *deadline) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) && p.over != nil {
		return p.over
	}
	return err
}

// send sends a request that is not a watch, with a time limit.
func (l *link) send(request *http.Request) (*http.Response, error) {
	ctx, p := withDeadline(request.Context(), l.limits.answer, "no answer")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	response.Body = &body{ReadCloser: response.Body, deadline: p}
	return response, nil
}

// watch sends a watch request. It limits the time until the watch starts, and the
// time between two reads.
func (l *link) watch(request *http.Request) (*http.Response, error) {
	ctx, p := withDeadline(request.Context(), l.limits.watchBegins, "the watch did not start")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	started := p.timer.Stop()
	watching := &body{ReadCloser: response.Body, deadline: p}
	if bookmarks := request.URL.Query().Get("allowWatchBookmarks"); started && (bookmarks == "true" || bookmarks == "1") {
		limit := l.limits.watchSilence
		watching.limit = limit
		p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{"the watch sent no event and no bookmark", limit}) })
	}
	// When the credentials are replaced, the watch ends like one that the server
	// ends: the client resumes it where it ended.
	watching.forget = context.AfterFunc(l.retired, func() { p.end(io.EOF) })
	response.Body = watching
	return response, nil
}

// body is the body of a response.
type body struct {
	io.ReadCloser
	deadline *deadline
	// limit is for the time between two reads; 0 for none.
	limit  time.Duration
	forget func() bool
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 && b.limit > 0 && err == nil {
		b.deadline.timer.Reset(b.limit)
	}
	return n, b.deadline.explain(err)
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.forget != nil {
		b.forget()
	}
	b.deadline.done()
	return b.ReadCloser.Close()
}
