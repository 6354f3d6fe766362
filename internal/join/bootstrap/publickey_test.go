package bootstrap

import (
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// withKey is a machine whose evidence, of a minute, is good for once and names a key.
func withKey(key string, minute int) *attest.Identity {
	id := machine("i-1", "worker-1")
	id.SingleUse, id.Digest, id.Issued = true, [32]byte{byte(minute)}, startTime.Add(time.Duration(minute)*time.Minute)
	if key != "" {
		id.PublicKey = "sha256:" + strings.Repeat(key, 64)
	}
	return id
}

// bindTo records that the token of the entry is used for the key of an identity.
func (w *testCluster) bindTo(id *attest.Identity) {
	entry := w.entry("test-i-1")
	entry.Status.Binding = &v1alpha1.TokenBinding{TokenID: entry.Spec.TokenID, PublicKey: id.PublicKey}
	if _, err := w.ledger.UpdateStatus(w.t.Context(), entry); err != nil {
		w.t.Fatal(err)
	}
}

func TestEvidenceThatIsGoodForOnce(t *testing.T) {
	for _, policy := range []Policy{Never, NodeAbsent, NewerEvidence, Always} {
		t.Run(string(policy), func(t *testing.T) {
			w := newTestCluster(t)
			s := w.service(with(policy))
			first := redeem(t, s, withKey("a", 1))
			_, err := s.Redeem(t.Context(), request(withKey("a", 1)), withKey("a", 1))
			refusedWith(t, err, "EvidenceUsed")
			again := redeem(t, s, withKey("a", 2))
			if again.Token.ID != first.Token.ID || !again.Repeated {
				t.Errorf("new evidence before the token is used: %s, want %s again", again.Token, first.Token)
			}
			_, err = s.Redeem(t.Context(), request(withKey("a", 1)), withKey("a", 1))
			refusedWith(t, err, "AlreadyAttested")
			_, err = s.Redeem(t.Context(), request(withKey("a", 2)), withKey("a", 2))
			refusedWith(t, err, "EvidenceUsed")
		})
	}
}

func TestTheLedgerHasTheKeyOfTheEvidence(t *testing.T) {
	w := newTestCluster(t)
	id := withKey("a", 1)
	redeem(t, w.service(nil), id)
	if got := w.entry("test-i-1").Spec.PublicKey; got != id.PublicKey {
		t.Errorf("%q, want %q", got, id.PublicKey)
	}
}

func TestAnotherKeyInTheEvidence(t *testing.T) {
	for _, tc := range []struct{ rule, first, second string }{
		{"another key", "a", "b"}, {"no key any more", "a", ""}, {"a key, and none before", "", "a"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			redeem(t, w.service(nil), withKey(tc.first, 1))
			_, err := w.service(nil).Redeem(t.Context(), request(withKey(tc.second, 2)), withKey(tc.second, 2))
			refusedWith(t, err, "PublicKeyChanged")
			before := w.entry("test-i-1")
			grant := redeem(t, w.service(with(Always)), withKey(tc.second, 2))
			after := w.entry("test-i-1")
			if grant.Token.ID == before.Spec.TokenID || after.Spec.PublicKey != withKey(tc.second, 2).PublicKey {
				t.Errorf("with the policy Always: token %s, key %q", grant.Token, after.Spec.PublicKey)
			}
		})
	}
}

// A machine that was interrupted between its request and its certificate asks again.
func TestTheSameKeyAgain(t *testing.T) {
	bound := func(w *testCluster) { w.bindTo(withKey("a", 1)) }
	boundIn := func(phase v1alpha1.Phase) func(*testCluster) {
		return func(w *testCluster) {
			bound(w)
			w.setPhase("test-i-1", phase)
		}
	}
	for _, tc := range []struct {
		rule, code string
		before     func(*testCluster)
		id         *attest.Identity
	}{
		{"while its request is not approved", "", bound, withKey("a", 2)},
		{"after its certificate", "", boundIn(v1alpha1.Certified), withKey("a", 2)},
		{"after its node", "AlreadyAttested", boundIn(v1alpha1.Registered), withKey("a", 2)},
		{"after the token has expired", "AlreadyAttested", func(w *testCluster) {
			bound(w)
			w.advanceClock(6 * time.Minute)
		}, withKey("a", 2)},
		{"with another key", "PublicKeyChanged", bound, withKey("b", 2)},
		{"after a revocation", "AttestationRevoked", boundIn(v1alpha1.Revoked), withKey("a", 2)},
		{"after the token was used for another key", "AlreadyAttested", func(w *testCluster) {
			w.bindTo(withKey("b", 1))
		}, withKey("a", 2)},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			first := redeem(t, w.service(nil), withKey("a", 1))
			tc.before(w)
			grant, err := w.service(nil).Redeem(t.Context(), request(tc.id), tc.id)
			if tc.code != "" {
				refusedWith(t, err, tc.code)
				return
			}
			if err != nil || grant.Token.Value() != first.Token.Value() {
				t.Errorf("%v %v, want %s again", grant, err, first.Token)
			}
		})
	}
}
