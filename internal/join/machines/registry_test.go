package machines_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// world is a cluster with one registry.
type world struct {
	*testing.T
	server   *fakeapiserver.Server
	client   *machines.Client
	registry *machines.Registry

	mu         sync.Mutex
	now        time.Time
	unreadable []string
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func newWorld(t *testing.T, manual bool, registered ...*v1alpha1.Machine) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	w.server = fakeapiserver.New(fakeapiserver.Options{Clock: w.clock, WatchList: true})
	client, err := machines.NewClient(w.server.InMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	for _, m := range registered {
		w.create(m)
	}
	w.registry = machines.New(machines.Options{
		Client: client, Manual: manual, Clock: w.clock,
		Unreadable: func(name string, err error) { w.unreadable = append(w.unreadable, fmt.Sprint(name, ": ", err)) },
	})
	if _, err := w.find("worker-1", &machines.Proof{PublicKey: hash(1)}); err == nil || isRefusal(err) {
		t.Fatalf("before the machines were read: %v", err)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { w.registry.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	w.eventually(func() bool { return w.registry.Fresh() == nil })
	return w
}

func isRefusal(err error) bool { return errors.As(err, new(*attest.Refusal)) }

func (w *world) create(m *v1alpha1.Machine) {
	w.Helper()
	if _, err := w.client.Create(w.Context(), m, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(condition func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		w.Fatal(err)
	}
}

const source = "192.0.2.7"

func (w *world) find(node string, proof *machines.Proof) (*v1alpha1.Machine, error) {
	return w.registry.Find(w.Context(), &attest.Request{NodeName: node, RemoteAddr: netip.MustParseAddr(source)}, proof)
}

// refused checks that a proof is refused with a code.
func (w *world) refused(node string, proof *machines.Proof, want verdict.Code) {
	w.Helper()
	_, err := w.find(node, proof)
	if refusal, ok := errors.AsType[*attest.Refusal](err); !ok || refusal.Code != want {
		w.Errorf("%v, want %s", err, want)
	}
}

// get returns a Machine; nil if there is none.
func (w *world) get(name string) *v1alpha1.Machine {
	w.Helper()
	m, err := w.client.Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return m
}

func hash(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func registered(name string, spec v1alpha1.MachineSpec) *v1alpha1.Machine {
	if spec.NodeName == "" {
		spec.NodeName = name
	}
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func withKeys(keys ...string) v1alpha1.MachineSpec { return v1alpha1.MachineSpec{PublicKeys: keys} }

func TestFind(t *testing.T) {
	at := func(text string) *metav1.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.Time{Time: parsed}
	}
	w := newWorld(t, false,
		registered("one", withKeys(hash(1), hash(2))),
		registered("of-tpm", v1alpha1.MachineSpec{TPM: &v1alpha1.MachineTPM{EKHashes: []string{hash(3), hash(4)}}}),
		registered("of-subject", v1alpha1.MachineSpec{X509: &v1alpha1.MachineX509{Subject: "CN=a,O=b"}}),
		registered("twin-1", withKeys(hash(5))), registered("twin-2", withKeys(hash(6), hash(5))),
		registered("here", v1alpha1.MachineSpec{PublicKeys: []string{hash(7)}, Addresses: []string{"192.0.2.1", source}}),
		registered("elsewhere", v1alpha1.MachineSpec{PublicKeys: []string{hash(8)}, Addresses: []string{"192.0.2.8", "none"}}),
		registered("ends", v1alpha1.MachineSpec{PublicKeys: []string{hash(9)}, Expires: at("2026-11-20T12:00:00Z")}),
		registered("lasts", v1alpha1.MachineSpec{PublicKeys: []string{hash(10)}, Expires: at("2026-11-20T12:00:01Z")}),
		registered("waits", v1alpha1.MachineSpec{PublicKeys: []string{hash(11)}, Approval: v1alpha1.Pending}),
		registered("odd", v1alpha1.MachineSpec{PublicKeys: []string{hash(12)}, Approval: "Maybe"}),
		registered("waits-too", v1alpha1.MachineSpec{PublicKeys: []string{hash(1)}, Approval: v1alpha1.Pending}),
	)
	for _, tc := range []struct {
		rule  string
		proof machines.Proof
		want  string // the name of the Machine, or a code
	}{
		{"a public key, also of a machine that waits for approval", machines.Proof{PublicKey: hash(1)}, "one"},
		{"another public key", machines.Proof{PublicKey: hash(2)}, "one"},
		{"an endorsement key", machines.Proof{EKHash: hash(4)}, "of-tpm"},
		{"a subject", machines.Proof{Subject: "CN=a,O=b"}, "of-subject"},
		{"part of a subject", machines.Proof{Subject: "CN=a"}, "MachineNotRegistered"},
		{"an unknown key", machines.Proof{PublicKey: hash(99)}, "MachineNotRegistered"},
		{"a public key that is an endorsement key", machines.Proof{EKHash: hash(1)}, "MachineNotRegistered"},
		{"an endorsement key that is a public key", machines.Proof{PublicKey: hash(3)}, "MachineNotRegistered"},
		{"a key of two machines", machines.Proof{PublicKey: hash(5)}, "MachineAmbiguous"},
		{"a key of only one of them", machines.Proof{PublicKey: hash(6)}, "twin-2"},
		{"from a registered address", machines.Proof{PublicKey: hash(7)}, "here"},
		{"from another address", machines.Proof{PublicKey: hash(8)}, "AddressNotRegistered"},
		{"at the end of the registration", machines.Proof{PublicKey: hash(9)}, "MachineExpired"},
		{"before the end of the registration", machines.Proof{PublicKey: hash(10)}, "lasts"},
		{"a machine that waits for approval", machines.Proof{PublicKey: hash(11)}, "PendingApproval"},
		{"an unknown approval", machines.Proof{PublicKey: hash(12)}, "PendingApproval"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			found, err := w.find("worker-1", &tc.proof)
			got := ""
			if refusal, ok := errors.AsType[*attest.Refusal](err); ok {
				got = string(refusal.Code)
			} else if err == nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
	if all, err := w.client.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 12 {
		t.Errorf("without manual approval, a machine was written: %v", err)
	}
	w.wait(time.Second)
	w.refused("worker-1", &machines.Proof{PublicKey: hash(10)}, machines.MachineExpired)
}

func TestFormsOfPublicKeys(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	ecKey, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	for i, key := range []any{edKey.Public(), ecKey.Public(), rsaKey.Public()} {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		line, err := ssh.NewPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		want := v1alpha1.PublicKeyHash(der)
		block := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		for _, text := range []string{
			want, block, strings.TrimSpace(block), string(ssh.MarshalAuthorizedKey(line)),
			strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line))) + " root@worker-1",
		} {
			got, err := machines.KeyHashes(registered("a", withKeys(text)))
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("key %d as %q: %v %v, want %s", i, text, got, err, want)
			}
		}
		for _, text := range []string{
			block + block, "command=\"sh\" " + string(ssh.MarshalAuthorizedKey(line)), strings.Replace(block, "PUBLIC", "PRIVATE", 2),
			string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der[:len(der)-1]})), "", "key", strings.ToUpper(want),
			string(ssh.MarshalAuthorizedKey(line)) + string(ssh.MarshalAuthorizedKey(line)),
		} {
			if got, err := machines.KeyHashes(registered("a", withKeys(text))); err == nil {
				t.Errorf("%q is read as %v", text, got)
			}
		}
	}
}

func TestKeysThatCannotBeReadAreReported(t *testing.T) {
	w := newWorld(t, false, registered("a", withKeys("ssh-rsa AAAA", hash(1))))
	if m, err := w.find("a", &machines.Proof{PublicKey: hash(1)}); err != nil || m.Name != "a" {
		t.Errorf("the other key: %v %v", m, err)
	}
	if len(w.unreadable) != 1 || !strings.HasPrefix(w.unreadable[0], "a: spec.publicKeys[0]: ") {
		t.Errorf("reported: %q", w.unreadable)
	}
}

func TestAnOldCopyDecidesNothing(t *testing.T) {
	w := newWorld(t, false, registered("a", withKeys(hash(1))))
	now := time.Now()
	var mu sync.Mutex
	old := machines.New(machines.Options{Client: w.client, MaxAge: time.Minute, Clock: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { old.Run(ctx) })
	w.eventually(func() bool { return old.Fresh() == nil })
	stop()
	running.Wait()
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	_, err := old.Find(t.Context(), &attest.Request{NodeName: "a"}, &machines.Proof{PublicKey: hash(1)})
	if _, tooOld := errors.AsType[*staleness.Error](err); !tooOld || old.Age().Check() == nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestApprovedMachinesOfANode(t *testing.T) {
	past := &metav1.Time{Time: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)}
	w := newWorld(t, false,
		registered("b", v1alpha1.MachineSpec{NodeName: "one"}), registered("a", v1alpha1.MachineSpec{NodeName: "one", Expires: past}),
		registered("c", v1alpha1.MachineSpec{NodeName: "one", Approval: v1alpha1.Pending}),
		registered("d", v1alpha1.MachineSpec{NodeName: "one", Approval: "Maybe"}), registered("e", v1alpha1.MachineSpec{NodeName: "other"}),
	)
	for node, want := range map[string]string{"one": "a b", "other": "e", "ONE": "", "": ""} {
		approved, err := w.registry.Approved(node)
		var names []string
		for _, m := range approved {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("%q: %v %v, want %s", node, got, err, want)
		}
	}
	unread := machines.New(machines.Options{Client: w.client})
	if approved, err := unread.Approved("one"); err == nil {
		t.Errorf("before the machines were read: %v", approved)
	}
}

// TestManualApproval follows one machine from its first request to the approval.
func TestManualApproval(t *testing.T) {
	w := newWorld(t, true)
	proof := &machines.Proof{PublicKey: hash(0x1f), Description: "ed25519\x1b[2Jkey"}
	w.refused("Worker-1", proof, machines.PendingApproval)
	name := "key-" + strings.TrimPrefix(hash(0x1f), "sha256:")[:20]
	m := w.get(name)
	if m == nil || m.IsApproved() || m.Spec.NodeName != "worker-1" || m.Spec.PublicKeys[0] != hash(0x1f) ||
		m.Spec.Evidence.Description != "ed25519?[2Jkey" || m.Spec.Evidence.RemoteAddress != source {
		t.Fatalf("%+v", m)
	}
	asked := func() time.Time { return w.get(name).Spec.Evidence.RequestTime.UTC() }
	first := asked()
	w.wait(59 * time.Second)
	w.eventually(func() bool {
		w.refused("worker-2", proof, machines.PendingApproval)
		return w.registry.Fresh() == nil
	})
	if asked() != first {
		t.Error("the time was written again within a minute")
	}
	w.wait(time.Second)
	w.eventually(func() bool {
		w.refused("worker-2", proof, machines.PendingApproval)
		return asked().Equal(first.Add(time.Minute))
	})
	m = w.get(name)
	if m.Spec.NodeName != "worker-1" {
		t.Errorf("another request changed the name to %s", m.Spec.NodeName)
	}
	m.Spec.Approval = v1alpha1.Approved
	if _, err := w.client.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() bool {
		found, err := w.find("worker-1", proof)
		return err == nil && found.Name == name
	})
}

func TestNamesThatNoMachineMayWaitFor(t *testing.T) {
	w := newWorld(t, true)
	for node, want := range map[string]verdict.Code{
		"10.0.0.7": attest.ReservedName, "kubernetes.default": attest.ReservedName, "a_b": machines.MachineNotRegistered,
		strings.Repeat("a", 300): machines.MachineNotRegistered,
	} {
		w.refused(node, &machines.Proof{PublicKey: hash(1)}, want)
	}
	if all, err := w.client.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) > 0 {
		t.Errorf("%v %v", all, err)
	}
}

func TestAMachineWithTheNameButAnotherProof(t *testing.T) {
	other := "sha256:" + strings.TrimPrefix(hash(1), "sha256:")[:20] + strings.Repeat("f", 44)
	w := newWorld(t, true, registered("key-00000000000000000000", withKeys(other)))
	w.refused("worker-1", &machines.Proof{PublicKey: hash(1)}, machines.MachineNotRegistered)
}

// TestManyUnknownMachines: at most 100 wait, however many ask at once, and only those that do not ask any more give way.
func TestManyUnknownMachines(t *testing.T) {
	w := newWorld(t, true)
	key := func(n int) *machines.Proof {
		return &machines.Proof{PublicKey: fmt.Sprintf("sha256:%020x%044x", n, n)}
	}
	var asking sync.WaitGroup
	for n := range 3 * machines.MaxPending {
		asking.Go(func() { _, _ = w.find("worker-1", key(n)) })
	}
	asking.Wait()
	count := func() int {
		all, err := w.client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Items)
	}
	if n := count(); n != machines.MaxPending {
		t.Fatalf("%d machines wait", n)
	}
	w.refused("worker-1", key(1000), machines.TooManyPending)
	// A request is recorded once the copy has the machine.
	w.wait(2 * time.Minute)
	w.eventually(func() bool {
		all, err := w.client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		recorded := 0
		for i := range all.Items {
			_, _ = w.find("worker-1", &machines.Proof{PublicKey: all.Items[i].Spec.PublicKeys[0]})
			if all.Items[i].Spec.Evidence.RequestTime.Equal(&metav1.Time{Time: w.clock()}) {
				recorded++
			}
		}
		return recorded == machines.MaxPending
	})
	w.refused("worker-1", key(1000), machines.TooManyPending)
	w.wait(time.Hour)
	w.eventually(func() bool { _, err := w.find("worker-1", key(1000)); return hasCode(err, machines.PendingApproval) })
	if n := count(); n != machines.MaxPending || w.get("key-"+fmt.Sprintf("%020x", 1000)) == nil {
		t.Errorf("%d machines wait", n)
	}
}

func hasCode(err error, want verdict.Code) bool {
	refusal, ok := errors.AsType[*attest.Refusal](err)
	return ok && refusal.Code == want
}

// TestFaultsAreNoDecisions: what the API server does not answer is neither a refusal nor a place that stays taken.
func TestFaultsAreNoDecisions(t *testing.T) {
	w := newWorld(t, true)
	w.server.Intercept(func(_ context.Context, call fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if call.Verb == "create" {
			return fakeapiserver.Failure("etcd is away"), nil
		}
		return do(), nil
	})
	for range 2 * machines.MaxPending {
		if _, err := w.find("worker-1", &machines.Proof{PublicKey: hash(1)}); err == nil || isRefusal(err) {
			t.Fatalf("%v", err)
		}
	}
	w.server.Intercept(nil)
	w.refused("worker-1", &machines.Proof{PublicKey: hash(1)}, machines.PendingApproval)
}

func FuzzPublicKey(f *testing.F) {
	f.Add("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE root@a")
	f.Add("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n")
	f.Add(hash(1))
	f.Fuzz(func(t *testing.T, text string) {
		hashes, err := machines.KeyHashes(registered("a", withKeys(text)))
		if (err == nil) != (len(hashes) == 1) || err == nil && (len(hashes[0]) != 71 || !strings.HasPrefix(hashes[0], "sha256:")) {
			t.Errorf("%q: %v %v", text, hashes, err)
		}
	})
}
