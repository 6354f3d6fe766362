package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
)

// cut is a way in which a call to the API server goes wrong.
type cut struct {
	rule string
	// done: the call takes effect, but nobody hears of it.
	done bool
	// crash: the caller ends with the call.
	crash bool
}

var cuts = []cut{
	{"the API server fails before the call", false, false},
	{"the API server fails after the call", true, false},
	{"the service is killed before the call", false, true},
	{"the service is killed after the call", true, true},
}

var errCut = errors.New("connection cut")

// cutAt redeems, and has call number n go wrong. It reports whether there were
// that many calls.
func (w *world) cutAt(s *Service, id *attest.Identity, n int, how cut) (grant *Grant, reached bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := 0
	w.server.Intercept(func(ctx context.Context, _ fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if calls++; calls != n+1 {
			return do(), nil
		}
		reached = true
		if how.done {
			do()
		}
		if how.crash {
			cancel()
			return nil, errCut
		}
		return fakeapiserver.Failure("etcd is away"), nil
	})
	defer w.server.Intercept(nil)
	grant, err = s.Redeem(ctx, request(id), id)
	return grant, reached, err
}

// TestCutsAreHealedByARetry cuts each call of each way to a token. Whatever
// happened, the retry succeeds, the machine then has one token, and no other is
// good for anything.
func TestCutsAreHealedByARetry(t *testing.T) {
	for _, way := range []struct {
		rule    string
		options func(*Options)
		before  func(w *world, s *Service)
		id      func() *attest.Identity
	}{
		{"first request", nil, nil, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"first request of all, when there is no key yet", nil, func(w *world, _ *Service) { w.rotateKey() }, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"retry after the key was replaced", nil, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.rotateKey()
			w.pass(keyLife)
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"retry after a version that derived no tokens", nil, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.forgetKey("test-i-1")
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"retry", nil, func(w *world, s *Service) { redeem(w.t, s, machine("i-1", "worker-1")) }, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"retry after the entry alone was made", nil, func(w *world, _ *Service) { w.enterDirectly(machine("i-1", "worker-1")) }, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"retry with newer evidence", nil, func(w *world, s *Service) { redeem(w.t, s, machine("i-1", "worker-1")) }, func() *attest.Identity { return restarted(machine("i-1", "worker-1")) }},
		{"after the token expired unused", nil, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.pass(time.Hour)
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"after the entry alone was made, and expired", nil, func(w *world, _ *Service) {
			w.enterDirectly(machine("i-1", "worker-1"))
			w.pass(time.Hour)
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"again under NodeAbsent", with(NodeAbsent), func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
		{"again under NewerEvidence, beside the node", with(NewerEvidence), func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
			w.node("worker-1")
		}, func() *attest.Identity { return restarted(machine("i-1", "worker-1")) }},
		{"under another name, while the token is good", with(NodeAbsent), func(w *world, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
		}, func() *attest.Identity { return machine("i-1", "worker-2") }},
		{"under the name of a machine that has ended", nil, func(w *world, s *Service) {
			redeem(w.t, s, machine("i-0", "worker-1"))
			w.certified("test-i-0")
			w.attestor.ended = map[string]bool{"i-0": true}
		}, func() *attest.Identity { return machine("i-1", "worker-1") }},
	} {
		for _, how := range cuts {
			t.Run(way.rule+"/"+how.rule, func(t *testing.T) {
				for n, reached := 0, true; reached; n++ {
					reached = cutOnce(t, way.options, way.before, way.id(), n, how)
				}
			})
		}
	}
}

// cutOnce is one world with one cut.
func cutOnce(t *testing.T, options func(*Options), before func(*world, *Service), id *attest.Identity, n int, how cut) (reached bool) {
	t.Helper()
	w := newWorld(t)
	s := w.service(options)
	if before != nil {
		before(w, s)
	}
	w.caughtUp(w.known)
	tried, reached, err := w.cutAt(s, id, n, how)
	var refusal *attest.Refusal
	if reached && (err == nil || errors.As(err, &refusal)) {
		t.Fatalf("call %d: %v, %v; want an error that is worth another try", n, tried, err)
	}
	if !reached && err != nil {
		t.Fatalf("without a cut: %v", err)
	}
	if n%2 == 0 {
		w.caughtUp(w.known) // a retry may come to a replica that has heard of it, or not
	}
	grant := redeem(t, w.service(options), id)
	if err := w.oneToken(id, grant); err != nil {
		t.Errorf("call %d: %v", n, err)
	}
	return reached
}

// oneToken says what else than this token is good for the machine.
func (w *world) oneToken(id *attest.Identity, grant *Grant) error {
	entry := w.entry("test-" + id.InstanceID)
	if entry.Spec.TokenID != grant.Token.ID || entry.Spec.NodeName != id.NodeName {
		return fmt.Errorf("the ledger says %s for %s, given was %s", entry.Spec.TokenID, entry.Spec.NodeName, grant.Token)
	}
	found := false
	for _, token := range w.tokens() {
		switch {
		case token.owner.UID != entry.UID:
		case token.id == grant.Token.ID:
			found = token.value == grant.Token.Value() && w.usable(token)
		case w.usable(token):
			return fmt.Errorf("%s is usable too", token.id)
		}
	}
	if !found {
		return fmt.Errorf("%s was given, which is not good", grant.Token)
	}
	return nil
}
