package server

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// reach records whether the API server answers, from the requests that are sent to it anyway. Watches,
// which are opened again when they break, are always among them.
type reach struct {
	answered atomic.Bool
	// trouble is why the last request had no answer; nil if it had one.
	trouble atomic.Pointer[error]
}

// watch is the wrapper of transports of a rest.Config.
func (r *reach) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		switch {
		case err == nil && response.StatusCode < http.StatusInternalServerError:
			r.answered.Store(true)
			r.trouble.Store(nil)
		case err == nil:
			r.failed(fmt.Errorf("it answers with status %s", response.Status))
		case request.Context().Err() == nil:
			r.failed(err)
		}
		return response, err
	})
}

func (r *reach) failed(err error) { r.trouble.Store(&err) }

// state is a readiness check: the last request was answered.
func (r *reach) state() (note string, err error) {
	if trouble := r.trouble.Load(); trouble != nil {
		return "", fmt.Errorf("the API server does not answer: %w", *trouble)
	}
	if !r.answered.Load() {
		return "", fmt.Errorf("waiting for the API server: %w", errNoAnswer)
	}
	return "", nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
