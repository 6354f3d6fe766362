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

// silenceError says that the API server said nothing for too long. It is a
// timeout for those who ask.
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

// Unwrap lets it be known as what it is.
func (e *silenceError) Unwrap() error { return context.DeadlineExceeded }

// patience ends a request when its time is over.
type patience struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration

	mu   sync.Mutex
	over error
}

// await returns the context of a request that has to be answered in time.
func await(ctx context.Context, limit time.Duration, what string) (context.Context, *patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &patience{cancel: cancel, limit: limit}
	p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{what, limit}) })
	return ctx, p
}

// end makes err what the request ends with, if it has not ended yet.
func (p *patience) end(err error) {
	p.mu.Lock()
	if p.over == nil {
		p.over = err
	}
	p.mu.Unlock()
	p.cancel(err)
}

// done frees what the request has taken.
func (p *patience) done() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}

// explain returns why a request was ended, if its time was over, and else err.
func (p *patience) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) && p.over != nil {
		return p.over
	}
	return err
}

// ask lets a request that is no watch have its time.
func (l *link) ask(request *http.Request) (*http.Response, error) {
	ctx, p := await(request.Context(), l.limits.answer, "no answer")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	response.Body = &body{ReadCloser: response.Body, patience: p}
	return response, nil
}

// watch lets a watch begin in time, and go on while bytes come.
func (l *link) watch(request *http.Request) (*http.Response, error) {
	ctx, p := await(request.Context(), l.limits.watchBegins, "the watch did not begin")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	begun := p.timer.Stop()
	watching := &body{ReadCloser: response.Body, patience: p}
	if bookmarks := request.URL.Query().Get("allowWatchBookmarks"); begun && (bookmarks == "true" || bookmarks == "1") {
		limit := l.limits.watchSilence
		watching.limit = limit
		p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{"no event and no bookmark came in the watch", limit}) })
	}
	// A watch of credentials that were replaced ends as those do that the server
	// ends: it is begun again where it ended.
	watching.forget = context.AfterFunc(l.retired, func() { p.end(io.EOF) })
	response.Body = watching
	return response, nil
}

// body is what is read of an answer.
type body struct {
	io.ReadCloser
	patience *patience
	// limit is for the time between two reads; 0 for none.
	limit  time.Duration
	forget func() bool
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 && b.limit > 0 && err == nil {
		b.patience.timer.Reset(b.limit)
	}
	return n, b.patience.explain(err)
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.forget != nil {
		b.forget()
	}
	b.patience.done()
	return b.ReadCloser.Close()
}
