package bootstrap

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// testCluster is a cluster in memory with bootstrap services.
type testCluster struct {
	t      testing.TB
	server *fakeapiserver.Server
	ledger *ledger.Client
	// client has all rights, limited has the rights of the service.
	client, limited kubernetes.Interface
	known           *ledger.Cache
	attestor        *attestor
	elapsed         atomic.Int64
}

// startTime is the time at the start of each test.
var startTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (w *testCluster) now() time.Time { return startTime.Add(time.Duration(w.elapsed.Load())) }

func (w *testCluster) advanceClock(d time.Duration) { w.elapsed.Add(int64(d)) }

func newTestCluster(t testing.TB) *testCluster {
	t.Helper()
	w := &testCluster{t: t, attestor: &attestor{}}
	w.server = fakeapiserver.New(fakeapiserver.Options{Clock: w.now, WatchList: true})
	var err error
	if w.ledger, err = ledger.NewClient(w.server.InMemory(nil)); err != nil {
		t.Fatal(err)
	}
	if w.client, err = kubernetes.NewForConfig(w.server.InMemory(nil)); err != nil {
		t.Fatal(err)
	}
	if w.limited, err = kubernetes.NewForConfig(w.server.InMemory(w.serviceMay)); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.ServiceKey(context.Background(), w.client); err != nil {
		t.Fatal(err)
	}
	w.known = w.cache(0)
	w.server.Calls()
	return w
}

// serviceMay allows the requests of the service about Secrets: create any, and read one.
func (w *testCluster) serviceMay(c fakeapiserver.Call) bool {
	allowed := c.Resource != "secrets" ||
		c.Namespace == "kube-system" && (c.Verb == "create" || c.Verb == "get" && c.Name == "node-authorizer-key")
	if !allowed {
		w.t.Errorf("the service wants to %s", c)
	}
	return allowed
}

// rotateKey deletes the key of the service, as an operator does.
func (w *testCluster) rotateKey() {
	w.t.Helper()
	secrets := w.client.CoreV1().Secrets(ledger.KeyNamespace)
	if err := secrets.Delete(context.Background(), ledger.KeySecretName, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// cache runs a cache of the ledger until the test ends. The limit bounds its age; 0: none.
func (w *testCluster) cache(limit time.Duration) *ledger.Cache {
	w.t.Helper()
	cache := ledger.NewCache(w.ledger)
	cache.LimitAge(limit, w.now)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	eventually(w.t, cache.Synced)
	return cache
}

// waitForCache waits until the cache has the same objects as the server.
func (w *testCluster) waitForCache(cache *ledger.Cache) {
	w.t.Helper()
	list, err := w.ledger.List(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, func() bool {
		for i := range list.Items {
			known, ok := cache.Get(list.Items[i].Name)
			if !ok || known.ResourceVersion != list.Items[i].ResourceVersion {
				return false
			}
		}
		return len(cache.All()) == len(list.Items)
	})
}

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Microsecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// service returns a replica.
func (w *testCluster) service(change func(*Options)) *Service {
	w.t.Helper()
	opts := Options{
		Attestor: w.attestor, Ledger: w.ledger, Known: w.known, Client: w.limited,
		TokenTTL: 5 * time.Minute, Reattestation: Never, VerifyRegistration: true, Timeout: 15 * time.Second, Clock: w.now,
		Observer: noObserver{},
	}
	if change != nil {
		change(&opts)
	}
	return New(opts)
}

type noObserver struct{}

func (noObserver) Attested(Event) {}

func with(policy Policy) func(*Options) {
	return func(opts *Options) { opts.Reattestation = policy }
}

// entry reads an entry of the ledger.
func (w *testCluster) entry(name string) *v1alpha1.NodeAttestation {
	w.t.Helper()
	entry, err := w.ledger.Get(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return entry
}

// secret reads the Secret of a token.
func (w *testCluster) secret(id string) *corev1.Secret {
	w.t.Helper()
	secrets := w.client.CoreV1().Secrets(ledger.TokenNamespace)
	secret, err := secrets.Get(context.Background(), ledger.TokenSecretName(id), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// storedToken is a token whose Secret exists.
type storedToken struct {
	id, value  string
	expiration time.Time
	owner      *metav1.OwnerReference
}

// tokens returns all tokens of the cluster.
func (w *testCluster) tokens() []storedToken {
	w.t.Helper()
	list, err := w.client.CoreV1().Secrets(ledger.TokenNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var tokens []storedToken
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Type != corev1.SecretTypeBootstrapToken {
			continue
		}
		end, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
		if err != nil {
			w.t.Fatal(err)
		}
		id := string(secret.Data["token-id"])
		tokens = append(tokens, storedToken{id, id + "." + string(secret.Data["token-secret"]), end, metav1.GetControllerOf(secret)})
	}
	return tokens
}

// usable reports whether a token can be used for a certificate request: it authenticates, its
// entry names it, and it was used for no key.
func (w *testCluster) usable(token storedToken) bool {
	list, err := w.ledger.List(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		entry := &list.Items[i]
		if entry.UID == token.owner.UID {
			return w.now().Before(token.expiration) && w.now().Before(entry.Spec.TokenExpiration.Time) &&
				entry.Spec.TokenID == token.id && entry.BoundKey() == "" && entry.Phase() == v1alpha1.Issued
		}
	}
	return false
}

// bind uses the token of an entry for a key, as the approver does.
func (w *testCluster) bind(name string) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Binding = &v1alpha1.TokenBinding{TokenID: entry.Spec.TokenID, PublicKey: "sha256:0123"}
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
}

// setPhase sets the phase of an entry's token, as the approver does, and waits for the cache.
func (w *testCluster) setPhase(name string, phase v1alpha1.Phase) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Phase, entry.Status.TokenID = phase, entry.Spec.TokenID
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
	w.waitForCache(w.known)
}

// certified uses the token of an entry.
func (w *testCluster) certified(name string) {
	w.t.Helper()
	w.bind(name)
	w.setPhase(name, v1alpha1.Certified)
}

// node registers a node.
func (w *testCluster) node(name string) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testCluster) noNode(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// machine returns the identity of a machine that booted when the test started.
func machine(id, node string) *attest.Identity {
	return &attest.Identity{
		Provider: "test", InstanceID: id, NodeName: node, Names: []string{node},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Issued: startTime.Add(-time.Minute),
	}
}

// request returns the request of a machine for its own name.
func request(id *attest.Identity) *attest.Request {
	return &attest.Request{NodeName: id.NodeName, RemoteAddr: netip.MustParseAddr("10.0.0.1")}
}

// attestor is an attestor that knows which machines are terminated.
type attestor struct {
	attest func(context.Context, *attest.Request) (*attest.Identity, error)
	ended  map[string]bool
	err    error
}

func (m *attestor) Name() string { return "test" }

func (m *attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	return m.attest(ctx, req)
}

func (m *attestor) Gone(_ context.Context, id, _ string) (bool, error) { return m.ended[id], m.err }

// redeem redeems an identity, and fails the test if there is an error.
func redeem(t testing.TB, s *Service, id *attest.Identity) *Grant {
	t.Helper()
	grant, err := s.Redeem(context.Background(), request(id), id)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// refusedWith checks the code of a refusal.
func refusedWith(t testing.TB, err error, code string) {
	t.Helper()
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) || string(refusal.Code) != code {
		t.Fatalf("error is %v, want a refusal %s", err, code)
	}
}
