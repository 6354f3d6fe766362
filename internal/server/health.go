package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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
