package bootstrap

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// meanwhile runs a function right before the first such call of a request.
func (w *testCluster) meanwhile(call string, happens func()) {
	happened := false
	w.server.Intercept(func(_ context.Context, c fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if !happened && c.Verb+" "+c.Resource == call {
			happened = true
			happens()
		}
		return do(), nil
	})
	w.t.Cleanup(func() {
		if !happened {
			w.t.Errorf("there was no call %q", call)
		}
	})
}

// revoke marks the entry and deletes its token, as the command does.
func (w *testCluster) revoke(name string) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Phase = v1alpha1.Revoked
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
	secrets := w.client.CoreV1().Secrets(ledger.TokenNamespace)
	err := secrets.Delete(context.Background(), ledger.TokenSecretName(entry.Spec.TokenID), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

func TestAMachineRevokedDuringARequestIsRefused(t *testing.T) {
	for _, call := range []string{"create secrets", "get nodeattestations"} {
		t.Run("before "+call, func(t *testing.T) {
			w := newTestCluster(t)
			s, id := w.service(nil), machine("i-1", "worker-1")
			w.meanwhile(call, func() { w.revoke("test-i-1") })
			_, err := s.Redeem(t.Context(), request(id), id)
			refusedWith(t, err, "AttestationRevoked")
		})
	}
}

func TestAnEntryDeletedDuringARequestIsCreatedAgain(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	w.meanwhile("create secrets", func() {
		if err := w.ledger.Delete(t.Context(), "test-i-1", nil); err != nil {
			t.Fatal(err)
		}
	})
	grant := redeem(t, s, id)
	if err := w.oneToken(id, grant); err != nil {
		t.Error(err)
	}
}

// A request that takes longer than the lifetime of its token finds the token replaced.
func TestATokenReplacedDuringARequestIsNotGiven(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	var faster *Grant
	w.meanwhile("create secrets", func() {
		w.advanceClock(5 * time.Minute)
		faster = redeem(t, w.service(nil), id)
	})
	slower := redeem(t, s, id)
	if slower.Token.Value() != faster.Token.Value() {
		t.Errorf("%s and %s were given", faster.Token, slower.Token)
	}
	if err := w.oneToken(id, slower); err != nil {
		t.Error(err)
	}
}

// The approver's clock may be slow: it binds a token that the service is about to replace
// because it expired. The first change of the entry wins.
func TestATokenUsedWhileItIsReplacedStaysUsed(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		before func(w *testCluster)
	}{
		{"because it expired", func(w *testCluster) { w.advanceClock(5 * time.Minute) }},
		{"because its key is gone", func(w *testCluster) { w.rotateKey(); w.advanceClock(keyTTL) }},
		{"because it was not derived", func(w *testCluster) { w.forgetKey("test-i-1") }},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			s, id := w.service(nil), machine("i-1", "worker-1")
			redeem(t, s, id)
			tc.before(w)
			w.meanwhile("update nodeattestations", func() {
				w.server.Intercept(nil)
				w.bind("test-i-1")
			})
			_, err := s.Redeem(t.Context(), request(id), id)
			refusedWith(t, err, "AlreadyAttested")
		})
	}
}

// A token is used after a request of its machine creates or finds its Secret, and before the
// answer.
func TestATokenUsedDuringARequestIsNotGiven(t *testing.T) {
	for _, call := range []string{"create secrets", "get nodeattestations"} {
		t.Run("before "+call, func(t *testing.T) {
			w := newTestCluster(t)
			s, id := w.service(nil), machine("i-1", "worker-1")
			w.meanwhile(call, func() {
				w.server.Intercept(nil)
				w.bind("test-i-1")
			})
			_, err := s.Redeem(t.Context(), request(id), id)
			refusedWith(t, err, "AlreadyAttested")
		})
	}
}

// A failed change of name does not affect the token of the old name.
func TestATokenIsUsableUntilItIsReplaced(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(with(NewerEvidence)), machine("i-1", "worker-1")
	before := redeem(t, s, id)
	renamed := restarted(machine("i-1", "worker-2"))
	w.server.Intercept(func(ctx context.Context, c fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if c.Verb == "update" && c.Resource == v1alpha1.Resource {
			return nil, errConnection
		}
		return do(), nil
	})
	if grant, err := s.Redeem(t.Context(), request(renamed), renamed); err == nil {
		t.Fatalf("%s was given", grant.Token)
	}
	w.server.Intercept(nil)
	grant := redeem(t, s, id)
	if grant.Token.Value() != before.Token.Value() {
		t.Errorf("%s was given, want %s again", grant.Token, before.Token)
	}
	if err := w.oneToken(id, grant); err != nil {
		t.Error(err)
	}
}

// The Secret of a used token is deleted, and the ledger learns of the certificate while a
// slow request creates the Secret again.
func TestATokenRecreatedAfterItsCertificateIsNotGiven(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	grant := redeem(t, s, id)
	secrets := w.client.CoreV1().Secrets(ledger.TokenNamespace)
	if err := secrets.Delete(t.Context(), ledger.TokenSecretName(grant.Token.ID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.meanwhile("create secrets", func() { w.setPhase("test-i-1", v1alpha1.Certified) })
	_, err := s.Redeem(t.Context(), request(id), id)
	refusedWith(t, err, "AlreadyAttested")
}
