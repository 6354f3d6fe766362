package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// fault is a way in which a call to the API server fails.
type fault struct {
	rule string
	// done: the call takes effect, but the caller gets no answer.
	done bool
	// crash: the caller is killed with the call.
	crash bool
}

var faults = []fault{
	{"the API server fails before the call", false, false},
	{"the API server fails after the call", true, false},
	{"the service is killed before the call", false, true},
	{"the service is killed after the call", true, true},
}

var errConnection = errors.New("connection cut")

// redeemWithFault redeems an identity, and makes call number n fail. It reports whether there
// were that many calls.
func (w *testCluster) redeemWithFault(
	s *Service, id *attest.Identity, n int, how fault,
) (grant *Grant, reached bool, err error) {
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
			return nil, errConnection
		}
		return fakeapiserver.Failure("etcd is away"), nil
	})
	defer w.server.Intercept(nil)
	grant, err = s.Redeem(ctx, request(id), id)
	return grant, reached, err
}

// Each call of each path to a token fails once. The retry succeeds, the machine then has one
// token, and no other token is usable.
func TestRetriesRepairFailedCalls(t *testing.T) {
	one := func() *attest.Identity { return machine("i-1", "worker-1") }
	oneRestarted := func() *attest.Identity { return restarted(machine("i-1", "worker-1")) }
	for _, way := range []struct {
		rule    string
		options func(*Options)
		before  func(w *testCluster, s *Service)
		id      func() *attest.Identity
	}{
		{"first request", nil, nil, one},
		{"first request of all, when there is no key yet", nil, func(w *testCluster, _ *Service) { w.rotateKey() }, one},
		{"retry after the key was replaced", nil, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.rotateKey()
			w.advanceClock(keyTTL)
		}, one},
		{"retry after a version that derived no tokens", nil, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.forgetKey("test-i-1")
		}, one},
		{"retry", nil, func(w *testCluster, s *Service) { redeem(w.t, s, one()) }, one},
		{"retry after only the entry was created", nil, func(w *testCluster, _ *Service) { w.createEntryDirectly(one()) }, one},
		{"retry with newer evidence", nil, func(w *testCluster, s *Service) { redeem(w.t, s, one()) }, oneRestarted},
		{"after the token expired unused", nil, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.advanceClock(time.Hour)
		}, one},
		{"after only the entry was created, and expired", nil, func(w *testCluster, _ *Service) {
			w.createEntryDirectly(machine("i-1", "worker-1"))
			w.advanceClock(time.Hour)
		}, one},
		{"again under NodeAbsent", with(NodeAbsent), func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
		}, one},
		{"again under NewerEvidence, while the node exists", with(NewerEvidence), func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.certified("test-i-1")
			w.node("worker-1")
		}, oneRestarted},
		{"under another name, while the token is valid", with(NodeAbsent), func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
		}, func() *attest.Identity { return machine("i-1", "worker-2") }},
		{"under the name of a machine that has ended", nil, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-0", "worker-1"))
			w.certified("test-i-0")
			w.attestor.ended = map[string]bool{"i-0": true}
		}, one},
	} {
		for _, how := range faults {
			t.Run(way.rule+"/"+how.rule, func(t *testing.T) {
				for n, reached := 0, true; reached; n++ {
					reached = redeemTwice(t, way.options, way.before, way.id(), n, how)
				}
			})
		}
	}
}

// redeemTwice redeems with one fault in a new cluster, and then without.
func redeemTwice(
	t *testing.T, options func(*Options), before func(*testCluster, *Service), id *attest.Identity, n int, how fault,
) (reached bool) {
	t.Helper()
	w := newTestCluster(t)
	s := w.service(options)
	if before != nil {
		before(w, s)
	}
	w.waitForCache(w.known)
	tried, reached, err := w.redeemWithFault(s, id, n, how)
	var refusal *attest.Refusal
	if reached && (err == nil || errors.As(err, &refusal)) {
		t.Fatalf("call %d: %v, %v; want an error that is not a refusal", n, tried, err)
	}
	if !reached && err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	if n%2 == 0 {
		w.waitForCache(w.known) // the replica of the retry may know the change or not
	}
	grant := redeem(t, w.service(options), id)
	if err := w.oneToken(id, grant); err != nil {
		t.Errorf("call %d: %v", n, err)
	}
	return reached
}

// oneToken returns an error unless the grant's token is the only usable token of the machine.
func (w *testCluster) oneToken(id *attest.Identity, grant *Grant) error {
	entry := w.entry("test-" + id.InstanceID)
	if entry.Spec.TokenID != grant.Token.ID || entry.Spec.NodeName != id.NodeName {
		return fmt.Errorf("the ledger says %s for %s, but the grant is %s", entry.Spec.TokenID, entry.Spec.NodeName, grant.Token)
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
		return fmt.Errorf("%s was given, and is not usable", grant.Token)
	}
	return nil
}
