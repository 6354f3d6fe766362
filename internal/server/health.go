package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// check is a named health check.
type check struct {
	name string
	// probe returns nil if the check passes, and a note for people in either case.
	probe func() (note string, err error)
}

// health answers GET: 200 if all checks pass, else 503 with the failed checks. With ?verbose it lists
// all of them.
func health(endpoint string, checks ...check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, endpoint+" answers GET", http.StatusMethodNotAllowed)
			return
		}
		lines, ok := probe(checks)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache, private")
		_, verbose := r.URL.Query()["verbose"]
		switch {
		case !ok:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, lines+endpoint+" check failed\n")
		case verbose:
			_, _ = io.WriteString(w, lines+endpoint+" check passed\n")
		default:
			_, _ = io.WriteString(w, "ok")
		}
	})
}

// probe returns one line for each check.
func probe(checks []check) (lines string, ok bool) {
	var b strings.Builder
	ok = true
	for _, c := range checks {
		note, err := c.probe()
		switch {
		case err != nil:
			ok = false
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.name, oneLine(err.Error()))
		case note != "":
			fmt.Fprintf(&b, "[+]%s ok: %s\n", c.name, oneLine(note))
		default:
			fmt.Fprintf(&b, "[+]%s ok\n", c.name)
		}
	}
	return b.String(), ok
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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
