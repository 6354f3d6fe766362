package bootstrap

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

func TestTheFirstRequestMakesTwoWritesAndTwoReads(t *testing.T) {
	w := newTestCluster(t)
	s := w.service(nil)
	redeem(t, s, machine("i-0", "worker-0")) // reads the key
	if calls := w.server.Calls(); !slices.Contains(calls, "get secrets node-authorizer-key") {
		t.Errorf("calls are %q", calls)
	}
	id := machine("i-1", "worker-1")
	grant := redeem(t, s, id)
	want := []string{
		"get nodes worker-1", "create nodeattestations", "create secrets", "get nodeattestations test-i-1",
	}
	if got := w.server.Calls(); !slices.Equal(got, want) {
		t.Errorf("calls are %q, want %q", got, want)
	}
	entry := w.entry("test-i-1")
	if grant.Repeated || grant.Token.ID != entry.Spec.TokenID || grant.Token.EntryUID != entry.UID {
		t.Errorf("grant is %+v of entry %+v", grant, entry)
	}
	if entry.Phase() != v1alpha1.Issued || entry.Spec.NodeName != "worker-1" ||
		!slices.Equal(entry.Spec.Addresses, []string{"10.0.0.1"}) ||
		!entry.Spec.TokenExpiration.Time.Equal(startTime.Add(5*time.Minute)) || !entry.Spec.EvidenceTime.Time.Equal(id.Issued) {
		t.Errorf("entry is %+v", entry.Spec)
	}
}

func TestTheSecretHasTheFormatOfKubernetes(t *testing.T) {
	w := newTestCluster(t)
	grant := redeem(t, w.service(nil), machine("i-1", "worker-1"))
	secret := w.secret(grant.Token.ID)
	want := map[string]string{
		"token-id": grant.Token.ID, "token-secret": grant.Token.Value()[7:], "expiration": "2026-11-20T12:05:00Z",
		"usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:node-authorizer",
		"description": "Lets test-i-1 join as node worker-1.",
	}
	for key, value := range secret.Data {
		if want[key] != string(value) {
			t.Errorf("%s is %q, want %q", key, value, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 || secret.Type != "bootstrap.kubernetes.io/token" || secret.Namespace != "kube-system" {
		t.Errorf("secret lacks %v, is of type %s in %s", want, secret.Type, secret.Namespace)
	}
	owner := metav1.GetControllerOf(secret)
	if owner == nil || owner.UID != w.entry("test-i-1").UID || owner.BlockOwnerDeletion != nil {
		t.Errorf("owner is %+v", owner)
	}
}

func TestRetryGetsTheSameToken(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	first := redeem(t, s, id)
	w.advanceClock(time.Minute)
	for _, known := range []string{"before the cache knows", "after"} {
		again := redeem(t, w.service(nil), id)
		if again.Token.Value() != first.Token.Value() || !again.Repeated {
			t.Errorf("%s: token %s, repeated %v, want %s again", known, again.Token, again.Repeated, first.Token)
		}
		w.waitForCache(w.known)
	}
}

// The token is for the attested name.
func TestAMachineMayAskByItsHostname(t *testing.T) {
	const name = "ip-10-0-0-7.eu-west-1.compute.internal"
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", name)
	req := request(id)
	req.NodeName = "IP-10-0-0-7"
	grant, err := s.Redeem(t.Context(), req, id)
	if err != nil {
		t.Fatal(err)
	}
	if entry := w.entry("test-i-1"); entry.Spec.NodeName != name || entry.Spec.TokenID != grant.Token.ID {
		t.Errorf("the entry is %+v", entry.Spec)
	}
	if again := redeem(t, s, id); again.Token.Value() != grant.Token.Value() {
		t.Error("the two forms of a name have two tokens")
	}
}

func TestRefusals(t *testing.T) {
	const longName = "worker-1.eu-west-1.compute.internal"
	for _, tc := range []struct {
		rule   string
		policy Policy
		before func(w *testCluster, s *Service)
		id     *attest.Identity
		asked  string
		want   string
	}{
		{"another name than that of the evidence", Never, nil, machine("i-1", "worker-1"), "worker-2", "NameMismatch"},
		{"a short form of another name", Never, nil, machine("i-1", longName), "worker-2", "NameMismatch"},
		{"two labels of its name", Never, nil, machine("i-1", longName), "worker-1.eu-west-1", "NameMismatch"},
		{"the first label with another domain", Never, nil, machine("i-1", longName), "worker-1.example.com", "NameMismatch"},
		{"a longer form of a short name", Never, nil, machine("i-1", "worker-1"), "worker-1.example.com", "NameMismatch"},
		{"another label of its name", Never, nil, machine("i-1", longName), "eu-west-1", "NameMismatch"},
		{"an invalid name", Never, nil, machine("i-1", "worker-1"), "worker_1", "InvalidNodeName"},
		{
			"a letter that only folds to that of the name", Never, nil,
			machine("i-1", "worker-1"), "wor\u212Aer-1", "InvalidNodeName",
		},
		{"a naming rule without a valid name", Never, nil, machine("i-1", "Worker 1"), "worker-1", "InvalidNodeName"},
		{
			"the node exists", Never,
			func(w *testCluster, _ *Service) { w.node("worker-1") },
			machine("i-1", "worker-1"), "worker-1", "AlreadyRegistered",
		},
		{
			"the node exists, and was never attested, under any policy", Always,
			func(w *testCluster, _ *Service) { w.node("worker-1") },
			machine("i-1", "worker-1"), "worker-1", "AlreadyRegistered",
		},
		{
			"the token was used, and the ledger has the certificate", Never,
			func(w *testCluster, s *Service) { redeem(w.t, s, machine("i-1", "worker-1")); w.certified("test-i-1") },
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"the token was used, and the ledger has no certificate yet", Never,
			func(w *testCluster, s *Service) { redeem(w.t, s, machine("i-1", "worker-1")); w.bind("test-i-1") },
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"the token was used and has expired, and the ledger has no certificate yet", Never,
			func(w *testCluster, s *Service) {
				redeem(w.t, s, machine("i-1", "worker-1"))
				w.bind("test-i-1")
				w.advanceClock(time.Hour)
			},
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"the node was deleted", Never,
			func(w *testCluster, s *Service) {
				redeem(w.t, s, machine("i-1", "worker-1"))
				w.certified("test-i-1")
				w.node("worker-1")
				w.setPhase("test-i-1", v1alpha1.Registered)
				w.noNode("worker-1")
			},
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"the machine is revoked", Always,
			func(w *testCluster, s *Service) {
				redeem(w.t, s, machine("i-1", "worker-1"))
				w.setPhase("test-i-1", v1alpha1.Revoked)
			},
			machine("i-1", "worker-1"), "worker-1", "AttestationRevoked",
		},
		{
			"another machine has the name", Always,
			func(w *testCluster, s *Service) { redeem(w.t, s, machine("i-2", "worker-1")); w.waitForCache(w.known) },
			machine("i-1", "worker-1"), "worker-1", "NameTaken",
		},
		{
			"the machine had another name", Never,
			func(w *testCluster, s *Service) { redeem(w.t, s, machine("i-1", "worker-0")); w.waitForCache(w.known) },
			machine("i-1", "worker-1"), "worker-1", "NameChanged",
		},
		{
			"with the policy NodeAbsent, the machine's node exists under its former name", NodeAbsent,
			func(w *testCluster, s *Service) {
				redeem(w.t, s, machine("i-1", "worker-0"))
				w.node("worker-0")
				w.waitForCache(w.known)
			},
			machine("i-1", "worker-1"), "worker-1", "NameChanged",
		},
		{
			"with the policy NewerEvidence, the same evidence", NewerEvidence,
			func(w *testCluster, s *Service) { redeem(w.t, s, machine("i-1", "worker-1")); w.certified("test-i-1") },
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"evidence from before a stop and start", NewerEvidence,
			func(w *testCluster, s *Service) { redeem(w.t, s, restarted(machine("i-1", "worker-1"))) },
			machine("i-1", "worker-1"), "worker-1", "AlreadyAttested",
		},
		{
			"evidence that was used for a second token", NewerEvidence,
			func(w *testCluster, s *Service) {
				redeem(w.t, s, machine("i-1", "worker-1"))
				redeem(w.t, s, restarted(machine("i-1", "worker-1")))
				w.certified("test-i-1")
			},
			restarted(machine("i-1", "worker-1")), "worker-1", "AlreadyAttested",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			s := w.service(with(tc.policy))
			if tc.before != nil {
				tc.before(w, s)
			}
			entries, tokens := w.server.ResourceVersion(), len(w.tokens())
			_, err := s.Redeem(t.Context(), &attest.Request{NodeName: tc.asked}, tc.id)
			refusedWith(t, err, tc.want)
			if w.server.ResourceVersion() != entries || len(w.tokens()) != tokens {
				t.Error("a refused request changed the cluster")
			}
		})
	}
}

// restarted returns the identity of a machine after a stop and start.
func restarted(id *attest.Identity) *attest.Identity {
	id.Issued = id.Issued.Add(30 * time.Second)
	return id
}

// In each case the machine gets a token that differs from the one before.
func TestMachinesGetANewToken(t *testing.T) {
	used := func(w *testCluster, s *Service) {
		redeem(w.t, s, machine("i-1", "worker-1"))
		w.certified("test-i-1")
	}
	for _, tc := range []struct {
		rule   string
		policy Policy
		before func(w *testCluster, s *Service)
		id     *attest.Identity
	}{
		{"after the one before expired unused", Never, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.advanceClock(5 * time.Minute)
		}, machine("i-1", "worker-1")},
		{"with the policy NodeAbsent, when the node is gone", NodeAbsent, used, machine("i-1", "worker-1")},
		{"with the policy NewerEvidence, after a restart", NewerEvidence, used, restarted(machine("i-1", "worker-1"))},
		{"with the policy NewerEvidence, after a restart, while its node exists", NewerEvidence, func(w *testCluster, s *Service) {
			used(w, s)
			w.node("worker-1")
		}, restarted(machine("i-1", "worker-1"))},
		{"with the policy Always", Always, used, machine("i-1", "worker-1")},
		{"with the policy Always, while its node exists", Always, func(w *testCluster, s *Service) {
			used(w, s)
			w.node("worker-1")
		}, machine("i-1", "worker-1")},
		{"with the policy Always, when the ledger has no certificate for the used token yet", Always, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
			w.bind("test-i-1")
		}, machine("i-1", "worker-1")},
		{"with the policy Always, under another name", Always, used, machine("i-1", "worker-2")},
		{"with the policy Always, under another name, while the one before is valid", Always, func(w *testCluster, s *Service) {
			redeem(w.t, s, machine("i-1", "worker-1"))
		}, machine("i-1", "worker-2")},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			s := w.service(with(tc.policy))
			tc.before(w, s)
			before := w.entry("test-i-1")
			grant := redeem(t, s, tc.id)
			after := w.entry("test-i-1")
			if grant.Repeated || grant.Token.ID == before.Spec.TokenID || grant.Token.ID != after.Spec.TokenID ||
				after.Spec.NodeName != tc.id.NodeName || after.Phase() != v1alpha1.Issued {
				t.Errorf("token %s, repeated %v; before %+v, after %+v", grant.Token, grant.Repeated, before.Spec, after.Spec)
			}
			for _, token := range w.tokens() {
				if w.usable(token) != (token.id == grant.Token.ID) {
					t.Errorf("%s is usable: %v", token.id, w.usable(token))
				}
			}
		})
	}
}

func TestARestartBeforeTheTokenIsUsedIsRecorded(t *testing.T) {
	w := newTestCluster(t)
	s := w.service(nil)
	first := redeem(t, s, machine("i-1", "worker-1"))
	moved := restarted(machine("i-1", "worker-1"))
	moved.Addresses = machine("i-1", "worker-1").Addresses[:0]
	again := redeem(t, s, moved)
	if again.Token.Value() != first.Token.Value() || !again.Repeated {
		t.Errorf("%s, want %s again", again.Token, first.Token)
	}
	if entry := w.entry("test-i-1"); len(entry.Spec.Addresses) != 0 || !entry.Spec.EvidenceTime.Time.Equal(moved.Issued) {
		t.Errorf("the ledger still says %+v", entry.Spec)
	}
}

func TestATokenThatIsAboutToExpireIsNotGivenAgain(t *testing.T) {
	for _, ttl := range []time.Duration{5 * time.Minute, 24 * time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) { givesNoTokenThatIsAboutToExpire(t, ttl) })
	}
}

// A machine waits half a minute at most until its token has expired, for any lifetime.
func givesNoTokenThatIsAboutToExpire(t *testing.T, ttl time.Duration) {
	w := newTestCluster(t)
	s, id := w.service(func(o *Options) { o.TokenTTL = ttl }), machine("i-1", "worker-1")
	first := redeem(t, s, id)
	w.advanceClock(ttl - time.Minute)
	if again := redeem(t, s, id); again.Token.ID != first.Token.ID {
		t.Error("another token was given a minute before the token expires")
	}
	w.advanceClock(40 * time.Second)
	var refusal *attest.Refusal
	if _, err := s.Redeem(t.Context(), request(id), id); err == nil || errors.As(err, &refusal) {
		t.Fatalf("error is %v, want one that is not a refusal", err)
	}
	w.advanceClock(20 * time.Second)
	if again := redeem(t, s, id); again.Token.ID == first.Token.ID {
		t.Error("an expired token was given")
	}
}

func TestTheNameOfATerminatedMachineIsFree(t *testing.T) {
	w := newTestCluster(t)
	s := w.service(nil)
	redeem(t, s, machine("i-1", "worker-1"))
	w.certified("test-i-1")
	next := machine("i-2", "worker-1")
	w.attestor.err = errors.New("throttled")
	if _, err := s.Redeem(t.Context(), request(next), next); !errors.Is(err, w.attestor.err) {
		t.Errorf("error is %v, want that of the attestor", err)
	}
	w.attestor.err, w.attestor.ended = nil, map[string]bool{"i-1": true}
	redeem(t, s, next)
	former := w.entry("test-i-1")
	if former.Phase() != v1alpha1.Revoked || len(former.Status.Conditions) != 1 ||
		former.Status.Conditions[0].Reason != string(MachineGone) {
		t.Errorf("the entry of the terminated machine is %+v", former.Status)
	}
	w.waitForCache(w.known)
	_, err := s.Redeem(t.Context(), request(machine("i-1", "worker-1")), machine("i-1", "worker-1"))
	refusedWith(t, err, "AttestationRevoked")
}

// A ledger that is too old gives no tokens: the owners of names may have changed.
func TestATooOldLedgerGivesNoTokens(t *testing.T) {
	w := newTestCluster(t)
	cache := w.cache(2 * time.Minute)
	s := w.service(func(o *Options) { o.Known = cache })
	redeem(t, s, machine("i-1", "worker-1"))
	w.waitForCache(cache)
	w.advanceClock(2*time.Minute + time.Second)
	w.server.Calls()
	old := machine("i-2", "worker-2")
	var tooOld *staleness.Error
	if grant, err := s.Redeem(t.Context(), request(old), old); grant != nil || !errors.As(err, &tooOld) {
		t.Fatalf("got %v, %v, want that the ledger is too old", grant, err)
	}
	if calls := w.server.Calls(); len(calls) > 0 {
		t.Errorf("it asked the API server %v", calls)
	}
	w.createEntryDirectly(machine("i-3", "worker-3"))
	w.waitForCache(cache)
	w.advanceClock(2 * time.Second)
	redeem(t, s, old)
}

// Two replicas may admit two machines with one name. The machine with the older entry gets
// its token again; the other one is refused.
func TestOlderEntryKeepsTheName(t *testing.T) {
	w := newTestCluster(t)
	unaware := ledger.NewCache(w.ledger)
	blind := w.service(nil)
	older, younger := machine("i-1", "worker-1"), machine("i-2", "worker-1")
	_, err := w.service(func(o *Options) { o.Known = unaware }).Redeem(t.Context(), request(older), older)
	if !errors.Is(err, ledger.ErrNotRead) {
		t.Fatalf("error is %v, want that the ledger was not read", err)
	}
	redeem(t, blind, younger)
	w.advanceClock(-time.Second)
	w.createEntryDirectly(older)
	w.waitForCache(w.known)
	redeem(t, blind, older)
	_, err = blind.Redeem(t.Context(), request(younger), younger)
	refusedWith(t, err, "NameTaken")
}

// createEntryDirectly writes an entry, as another replica does.
func (w *testCluster) createEntryDirectly(id *attest.Identity) {
	w.t.Helper()
	r := &redemption{
		Service: w.service(nil), req: request(id), id: id, name: v1alpha1.EntryName(id.Provider, id.InstanceID),
	}
	entry := &v1alpha1.NodeAttestation{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	r.fillSpec(&entry.Spec)
	key, err := r.keys.current(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	r.newToken(&entry.Spec, key)
	if _, err := w.ledger.Create(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnEntryOfAnotherMachineWithTheSameNameIsAnError(t *testing.T) {
	w := newTestCluster(t)
	s := w.service(nil)
	one := machine("b-c", "worker-1")
	one.Provider = "a"
	two := machine("c", "worker-2")
	two.Provider = "a-b"
	redeem(t, s, one)
	var refusal *attest.Refusal
	if _, err := s.Redeem(t.Context(), request(two), two); err == nil || errors.As(err, &refusal) {
		t.Errorf("error is %v, want that it could not be decided", err)
	}
}

// The service cannot see the owner of a Secret. The token that it gives does not work. After
// it has expired, the machine gets another one.
func TestATokenIDThatIsTaken(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	w.createEntryDirectly(id)
	taken := w.entry("test-i-1").Spec.TokenID
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + taken},
		Type:       corev1.SecretTypeBootstrapToken,
		Data:       map[string][]byte{"token-id": []byte(taken), "token-secret": []byte("0123456789abcdef")},
	}
	if _, err := w.client.CoreV1().Secrets(foreign.Namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if grant := redeem(t, s, id); grant.Token.Value() == taken+".0123456789abcdef" {
		t.Error("the token of another user was given")
	}
	w.advanceClock(5 * time.Minute)
	if grant := redeem(t, s, id); grant.Token.ID == taken || grant.Token.ID != w.entry("test-i-1").Spec.TokenID {
		t.Errorf("%s was given", grant.Token)
	}
}

func TestRandomTextIsUniform(t *testing.T) {
	const samples = 20_000
	counts := map[rune]int{}
	for range samples {
		text := randomText(ledger.TokenSecretLength)
		if len(text) != ledger.TokenSecretLength {
			t.Fatalf("%q has %d characters", text, len(text))
		}
		for _, c := range text {
			counts[c]++
		}
	}
	mean := float64(samples*ledger.TokenSecretLength) / float64(len(v1alpha1.TokenAlphabet))
	var chi2 float64
	for _, c := range v1alpha1.TokenAlphabet {
		d := float64(counts[c]) - mean
		chi2 += d * d / mean
	}
	// 35 degrees of freedom: one run in ten million exceeds 100. Bytes modulo 36 give more
	// than 200.
	if len(counts) != len(v1alpha1.TokenAlphabet) || chi2 > 100 {
		t.Errorf("%d different characters, chi square %.0f", len(counts), chi2)
	}
}
