package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// Each request has another address, so that all of them change the entry. Each call takes a
// moment, so that all requests are between reading and writing at the same time.
func TestFiftyRequestsFromManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.attestor.attest = func(_ context.Context, req *attest.Request) (*attest.Identity, error) {
			id := machine("i-1", "worker-1")
			id.Addresses = []netip.Addr{req.RemoteAddr}
			return id, nil
		}
		w.server.Intercept(func(_ context.Context, _ fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			return do(), nil
		})
		replicas := []*Service{w.service(nil), w.service(nil)}
		values := make([]string, 50)
		var running sync.WaitGroup
		for i := range values {
			running.Go(func() {
				req := &attest.Request{NodeName: "worker-1", RemoteAddr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}
				grant, _, err := replicas[i%2].Join(t.Context(), req)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				values[i] = grant.Token.Value()
			})
		}
		running.Wait()
		for _, value := range values {
			if value != values[0] {
				t.Error("more than one token was given")
			}
		}
		for _, s := range replicas {
			if n := len(s.locks.held); n > 0 {
				t.Errorf("%d locks are left", n)
			}
		}
	})
}

// A request whose wait was canceled does not keep the lock.
func TestAWaitForOtherRequestsEndsWithTheContext(t *testing.T) {
	w := newTestCluster(t)
	id := machine("i-1", "worker-1")
	w.attestor.attest = func(context.Context, *attest.Request) (*attest.Identity, error) { return id, nil }
	s := w.service(nil)
	unlock, err := s.locks.lock(t.Context(), "test-i-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Join(ctx, request(id)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	unlock()
	if _, _, err := s.Join(t.Context(), request(id)); err != nil {
		t.Error(err)
	}
}

// The requests come at the same time, as after a lost answer, or from an attacker who has
// the machine's evidence.
func TestTwentyRequestsAtTwoReplicasYieldOneToken(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		policy Policy
		before func(w *testCluster, s *Service)
	}{
		{"of a new machine", Never, func(*testCluster, *Service) {}},
		{"of a machine whose token expired unused", Never, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.advanceClock(time.Hour)
		}},
		{"of a machine that may be attested again", NodeAbsent, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
		}},
		{"of a machine with another name", NodeAbsent, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-0"))
			w.waitForCache(w.known)
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			other := w.cache(0)
			replicas := []*Service{
				w.service(with(tc.policy)),
				w.service(func(o *Options) { o.Known, o.Reattestation = other, tc.policy }),
			}
			tc.before(w, replicas[0])
			grants, id := make([]*Grant, 20), machine("i-1", "worker-1")
			var running sync.WaitGroup
			start := make(chan struct{})
			for i := range grants {
				running.Go(func() {
					<-start
					var err error
					if grants[i], err = replicas[i%2].Redeem(t.Context(), request(id), id); err != nil {
						t.Errorf("request %d: %v", i, err)
					}
				})
			}
			close(start)
			running.Wait()
			if t.Failed() {
				return
			}
			first := 0
			for _, grant := range grants {
				if err := w.oneToken(id, grant); err != nil {
					t.Error(err)
				}
				if grant.Token.Value() != grants[0].Token.Value() {
					t.Errorf("%s and %s were given", grant.Token, grants[0].Token)
				}
				if !grant.Repeated {
					first++
				}
			}
			if first != 1 {
				t.Errorf("%d requests issued the token", first)
			}
		})
	}
}
