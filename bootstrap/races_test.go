package bootstrap

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/ledger"
)

// meanwhile has something happen right before a request's first such call.
func (w *world) meanwhile(call string, happens func()) {
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
func (w *world) revoke(name string) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Phase = v1alpha1.Revoked
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
	err := w.client.CoreV1().Secrets(ledger.TokenNamespace).Delete(context.Background(), ledger.TokenSecretName(entry.Spec.TokenID), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

func TestMachineRevokedWhileItAsksGetsNothing(t *testing.T) {
	for _, call := range []string{"create secrets", "get nodeattestations"} {
		t.Run("before "+call, func(t *testing.T) {
			w := newWorld(t)
			s, id := w.service(nil), machine("i-1", "worker-1")
			w.meanwhile(call, func() { w.revoke("test-i-1") })
			_, err := s.Redeem(t.Context(), request(id), id)
			refusedWith(t, err, "AttestationRevoked")
		})
	}
}

func TestMachineThatLosesItsEntryWhileItAsksBeginsAnew(t *testing.T) {
	w := newWorld(t)
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

// A request that is slower than the life of its token finds that another has
// replaced it.
func TestTokenReplacedWhileAMachineAsksIsNotGiven(t *testing.T) {
	w := newWorld(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	var faster *Grant
	w.meanwhile("create secrets", func() {
		w.pass(5 * time.Minute)
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

// The approver's clock may be behind: it binds a token that the service is about
// to replace for having expired. Whoever changes the entry first wins.
func TestTokenUsedWhileItIsReplacedIsUsed(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		before func(w *world)
	}{
		{"for having expired", func(w *world) { w.pass(5 * time.Minute) }},
		{"because its key is gone", func(w *world) { w.rotateKey(); w.pass(keyLife) }},
		{"because a version made it that derived no tokens", func(w *world) { w.forgetKey("test-i-1") }},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newWorld(t)
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

// A token is used between the moment when a request of its machine creates its
// Secret, or finds it, and the answer.
func TestTokenUsedWhileItIsGivenIsUsed(t *testing.T) {
	for _, call := range []string{"create secrets", "get nodeattestations"} {
		t.Run("before "+call, func(t *testing.T) {
			w := newWorld(t)
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

// A change of name that was begun and never finished takes nothing from the
// machine under its name.
func TestTokenIsGoodUntilAnotherTakesItsPlace(t *testing.T) {
	w := newWorld(t)
	s, id := w.service(with(NewerEvidence)), machine("i-1", "worker-1")
	before := redeem(t, s, id)
	renamed := restarted(machine("i-1", "worker-2"))
	w.server.Intercept(func(ctx context.Context, c fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if c.Verb == "update" && c.Resource == v1alpha1.Resource {
			return nil, errCut
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

// The Secret of a used token is deleted, and the ledger learns of the certificate
// while a slow request makes the Secret anew.
func TestTokenMadeAnewAfterItsCertificateIsNotGiven(t *testing.T) {
	w := newWorld(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	grant := redeem(t, s, id)
	if err := w.client.CoreV1().Secrets(ledger.TokenNamespace).Delete(t.Context(), ledger.TokenSecretName(grant.Token.ID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.meanwhile("create secrets", func() { w.reaches("test-i-1", v1alpha1.Certified) })
	_, err := s.Redeem(t.Context(), request(id), id)
	refusedWith(t, err, "AlreadyAttested")
}
