package probe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakecluster"
)

// TestAnAPIServerThatDoesNotAnswer is asked a few times only.
func TestAnAPIServerThatDoesNotAnswer(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	// Requests that name no body are sent again by the client when a connection ends.
	results, err := Run(t.Context(), &rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n > 2*maxFailures {
		t.Errorf("asked %d times", n)
	}
	for _, p := range results.Probes {
		if p.Outcome != Undetermined {
			t.Errorf("%s %s", p.ID, p.Outcome)
		}
	}
}

// TestAnswersAreBounded: a response that is larger than the limit is none, and control characters of
// messages are not printed.
func TestAnswersAreBounded(t *testing.T) {
	for rule, body := range map[string]string{
		"large":  `{"kind": "Status", "message": "` + strings.Repeat("x", maxAnswer) + `"}`,
		"broken": "{",
		"page":   "<html>",
	} {
		t.Run(rule, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			results, err := Run(t.Context(), &rest.Config{Host: server.URL}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range results.Probes {
				if p.Outcome != Undetermined {
					t.Errorf("%s %s", p.ID, p.Outcome)
				}
				for _, s := range p.Sent {
					if len(s.Answer) > 2*maxLine {
						t.Errorf("%s: an answer of %d bytes", p.ID, len(s.Answer))
					}
				}
			}
		})
	}
	for text, want := range map[string]string{
		"one\ntwo": "one", " \x1b[31mred": "[31mred", "a\u202eb": "ab", "\xff": "",
		strings.Repeat("é", 400): strings.Repeat("é", maxLine) + "…",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestRedirectsAreNotFollowed: another server's answers say nothing about this one.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent elsewhere", r.URL) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	results, err := Run(t.Context(), &rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range results.Probes {
		if p.Outcome != Undetermined {
			t.Errorf("%s %s", p.ID, p.Outcome)
		}
	}
}

// TestCredentialsAreOnlyWhereTheyBelong: requests without a credential have none, and all go to the
// path of the API server behind a proxy.
func TestCredentialsAreOnlyWhereTheyBelong(t *testing.T) {
	fake := &fakecluster.Cluster{}
	without := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/clusters/c-1")
		if !ok {
			t.Errorf("%s was asked", r.URL)
		}
		if anonymous := path == "/version" || path == "/healthz" || path == "/api"; anonymous {
			without++
			if r.Header.Get("Authorization") != "" || r.Header.Get("Impersonate-User") != "" {
				t.Errorf("%s has a credential", path)
			}
		}
		r.URL.Path = path
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL + "/clusters/c-1", BearerToken: fakecluster.Token}
	config.Impersonate.UserName = "ada"
	results, err := Run(t.Context(), config, Options{Minor: 37})
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomes(results); len(got) > 0 || without != 3 {
		t.Errorf("%q, %d requests without a credential", got, without)
	}
}
