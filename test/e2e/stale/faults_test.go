package stale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

const (
	// margin is the time that docs/reference/server.md adds to maxStaleness for a busy server.
	margin = 15 * time.Second
	// recovery is how long a server may take to be ready after the end of a fault.
	recovery = 3 * time.Minute
	interval = 200 * time.Millisecond
)

// fault is a way to be disconnected from the API server.
type fault struct {
	name  string
	plane func() *plane
	// begin causes the fault for a server, and end removes it.
	begin, end func(context.Context, *testServer) error
	// apiServerDown is whether the API server takes no writes during the fault.
	apiServerDown bool
}

func faults() []fault {
	onProxy := func(do func(*testServer)) func(context.Context, *testServer) error {
		return func(_ context.Context, s *testServer) error { do(s); return nil }
	}
	works := func() *plane { return reached }
	return []fault{
		{
			name: "proxy-stopped", plane: works,
			begin: onProxy(func(s *testServer) { s.proxy.Pause() }), end: onProxy(func(s *testServer) { s.proxy.Resume() }),
		},
		{
			name: "half-open", plane: works,
			begin: onProxy(func(s *testServer) { s.proxy.Blackhole() }), end: onProxy(func(s *testServer) { s.proxy.EndBlackhole() }),
		},
		{
			// A watch outlives its credentials. The next request is answered with 401.
			name: "unauthorized", plane: works,
			begin: func(ctx context.Context, s *testServer) error {
				defer s.proxy.Reset()
				if err := s.plane.admin.CoreV1().ServiceAccounts(space).Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
					return err
				}
				return await.Until(ctx, "the token is invalid", s.unknown)
			},
			end: func(ctx context.Context, s *testServer) error { return s.renewToken(ctx) },
		},
		{
			name: "forbidden", plane: works,
			begin: func(ctx context.Context, s *testServer) error {
				defer s.proxy.Reset()
				if err := s.plane.forbid(ctx, s.name); err != nil {
					return err
				}
				return await.Until(ctx, "the account has no rights", s.powerless)
			},
			end: func(ctx context.Context, s *testServer) error { return s.plane.allow(ctx, s.name) },
		},
		{
			name: "apiserver-stopped", plane: func() *plane { return stopped }, apiServerDown: true,
			begin: func(_ context.Context, s *testServer) error { return s.plane.Pause(localplane.APIServer) },
			end:   func(_ context.Context, s *testServer) error { return s.plane.Resume(localplane.APIServer) },
		},
	}
}

// TestStaleStateAllowsNothing runs a server for each fault, and deletes a pod while
// the server is disconnected. Within maxStaleness the answer becomes an error, never a
// refusal. When the server is connected again, it answers from the cluster's new state.
func TestStaleStateAllowsNothing(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.apiServerDown {
				f.plane().alone.Lock()
				defer f.plane().alone.Unlock()
			}
			s := newServer(t, f.plane(), f.name)
			ctx := t.Context()
			s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })

			if err := f.begin(ctx, s); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if !f.apiServerDown {
				if err := s.plane.deletePod(ctx, s.name); err != nil {
					t.Fatal(err)
				}
			}
			var notReady time.Duration
			said := s.until(t, time.Until(began.Add(maxStaleness+margin)), "the answer is an error", func() error {
				if notReady == 0 && s.Ready(ctx) != nil {
					notReady = time.Since(began)
				}
				return s.expectAfter(ctx, failed, allowed)
			})
			toError := time.Since(began)
			s.until(t, time.Until(began.Add(maxStaleness+margin)), "it is not ready", func() error {
				err := s.Ready(ctx)
				switch {
				case err == nil:
					return fmt.Errorf("it is ready")
				case notReady == 0:
					notReady = time.Since(began)
				}
				return nil
			})
			s.until(t, margin, "its mappings are too old", func() error {
				if err := s.Ready(ctx); err == nil || !strings.Contains(err.Error(), "[-]mappings failed") {
					return fmt.Errorf("readyz says %w", err)
				}
				return nil
			})
			if s.metric(ctx, `node_authorizer_stale_answers_total{endpoint="authorize"}`) == "" {
				t.Error("the answers are not counted")
			}

			if err := f.end(ctx, s); err != nil {
				t.Fatal(err)
			}
			ended := time.Now()
			if f.apiServerDown {
				s.until(t, recovery, "the pod can be deleted", func() error { return s.plane.deletePod(ctx, s.name) })
				// The pod existed until now, so the server may have allowed it again.
				s.until(t, recovery, "the state is current", func() error { return s.expect(ctx, refused) })
			} else {
				s.until(t, recovery, "the state is current", func() error { return s.expectAfter(ctx, refused, failed) })
			}
			toAnswer := time.Since(ended)
			s.until(t, recovery, "it is ready", func() error { return s.Ready(ctx) })
			t.Logf("%s: an error after %.1f s, not ready after %.1f s (limit %v); after its end, answered after %.1f s, "+
				"ready after %.1f s; said %q",
				f.name, toError.Seconds(), notReady.Seconds(), maxStaleness, toAnswer.Seconds(), time.Since(ended).Seconds(), said)
			s.loggedOnce(t)
		})
	}
}

// TestSilentConnectionIsReplaced stops all traffic on the connections of a server while
// new connections work. The server reconnects by itself, and no answer is an error.
func TestSilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := newServer(t, reached, "silent")
	ctx := t.Context()
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	s.proxy.HalfOpen()
	began := time.Now()
	if err := s.plane.deletePod(ctx, s.name); err != nil {
		t.Fatal(err)
	}
	s.until(t, maxStaleness, "the deletion is known", func() error { return s.expectAfter(ctx, refused, allowed) })
	t.Logf("silent connection, new ones work: known after %.1f s", time.Since(began).Seconds())
}

// TestConnectedServerIsNeverStale is the control: in a cluster without changes, the state
// does not become too old.
func TestConnectedServerIsNeverStale(t *testing.T) {
	t.Parallel()
	s := newServer(t, reached, "steady")
	ctx := t.Context()
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	for end := time.Now().Add(2*maxStaleness - margin); time.Now().Before(end); s.pause(t) {
		if err := s.Ready(ctx); err != nil {
			t.Fatalf("it is not ready: %v", err)
		}
		if err := s.expect(ctx, allowed); err != nil {
			t.Fatal(err)
		}
	}
}

// expect returns an error unless the server gives an answer.
func (s *testServer) expect(ctx context.Context, want answer) error {
	got, text, err := s.ask(ctx)
	if err == nil && got != want {
		err = fmt.Errorf("the answer is %s: %s", got, text)
	}
	return err
}

// wrongError stops a wait, because the answer is neither the previous nor the expected
// one.
type wrongError struct{ error }

// expectAfter is expect, but until then only the previous answer is allowed.
func (s *testServer) expectAfter(ctx context.Context, want, before answer) error {
	got, text, err := s.ask(ctx)
	switch {
	case err != nil:
		return err
	case got == want:
		return nil
	case got != before:
		return wrongError{fmt.Errorf("the answer is %s after %s: %s", got, before, text)}
	}
	return fmt.Errorf("the answer is still %s: %s", got, text)
}

// until waits for a condition and returns the text of the server's last answer.
func (s *testServer) until(t *testing.T, limit time.Duration, what string, condition func() error) string {
	t.Helper()
	for deadline := time.Now().Add(limit); ; s.pause(t) {
		err := condition()
		if err == nil {
			break
		}
		if wrong, ok := errors.AsType[wrongError](err); ok || time.Now().After(deadline) {
			text, _ := s.Log()
			t.Fatalf("%s: not within %v that %s: %v (%v)\nreadyz: %v\n%s", s.name, limit.Round(time.Second), what, err, wrong.error,
				s.Ready(t.Context()), tail(text, 30))
		}
	}
	_, text, _ := s.ask(t.Context())
	return text
}

// pause waits until the next check.
func (s *testServer) pause(t *testing.T) {
	select {
	case <-time.After(interval):
	case <-t.Context().Done():
	}
}

// loggedOnce checks that the log has one line when mappings become too old, and one when
// they are fresh again.
func (s *testServer) loggedOnce(t *testing.T) {
	t.Helper()
	s.until(t, margin, "it is logged once", func() error {
		text, err := s.Log()
		if err != nil {
			return err
		}
		for _, says := range []string{"a copy is too old", "a copy is current again"} {
			if n := strings.Count(text, says); n != 1 {
				return fmt.Errorf("the log says %d times that %s", n, says)
			}
		}
		return nil
	})
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
