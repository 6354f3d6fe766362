package bootstrap

import (
	"sync"
	"testing"
	"time"
)

// TestTwentyRequestsAtTwoReplicasYieldOneToken has them all at once, as after an
// answer that was lost, or an attacker with the machine's evidence.
func TestTwentyRequestsAtTwoReplicasYieldOneToken(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		policy Policy
		before func(w *world, s *Service)
	}{
		{"of a new machine", Never, func(*world, *Service) {}},
		{"of a machine whose token expired unused", Never, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.pass(time.Hour)
		}},
		{"of a machine that may be attested again", NodeAbsent, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
		}},
		{"of a machine with another name", NodeAbsent, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-0"))
			w.caughtUp(w.known)
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newWorld(t)
			other := w.cache(0)
			replicas := []*Service{w.service(with(tc.policy)), w.service(func(o *Options) { o.Known, o.Reattestation = other, tc.policy })}
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
