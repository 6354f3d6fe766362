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
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/ledger"
)

// world is a cluster in memory with bootstrap services.
type world struct {
	t      testing.TB
	server *fakeapiserver.Server
	ledger *ledger.Client
	// client may do everything, and limited what the service may.
	client, limited kubernetes.Interface
	known           *ledger.Cache
	attestor        *machines
	elapsed         atomic.Int64
}

// dawn is when each world begins.
var dawn = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (w *world) now() time.Time { return dawn.Add(time.Duration(w.elapsed.Load())) }

func (w *world) pass(d time.Duration) { w.elapsed.Add(int64(d)) }

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, attestor: &machines{}}
	w.server = fakeapiserver.New(fakeapiserver.Options{Clock: w.now, WatchList: true})
	var err error
	if w.ledger, err = ledger.NewClient(w.server.InMemory(nil)); err != nil {
		t.Fatal(err)
	}
	if w.client, err = kubernetes.NewForConfig(w.server.InMemory(nil)); err != nil {
		t.Fatal(err)
	}
	if w.limited, err = kubernetes.NewForConfig(w.server.InMemory(w.mayService)); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.ServiceKey(context.Background(), w.client); err != nil {
		t.Fatal(err)
	}
	w.known = w.cache(0)
	w.server.Calls()
	return w
}

// mayService is what the service may do with Secrets: create them, and read one.
func (w *world) mayService(c fakeapiserver.Call) bool {
	allowed := c.Resource != "secrets" || c.Namespace == "kube-system" && (c.Verb == "create" || c.Verb == "get" && c.Name == "node-authorizer-key")
	if !allowed {
		w.t.Errorf("the service wants to %s", c)
	}
	return allowed
}

// rotateKey deletes the key of the service, as an operator does.
func (w *world) rotateKey() {
	w.t.Helper()
	if err := w.client.CoreV1().Secrets(ledger.KeyNamespace).Delete(context.Background(), ledger.KeySecretName, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// cache follows the ledger until the test ends. The limit is that of its age; 0 for
// none.
func (w *world) cache(limit time.Duration) *ledger.Cache {
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

// caughtUp waits until the cache knows what the server has.
func (w *world) caughtUp(cache *ledger.Cache) {
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
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Microsecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// service is one replica.
func (w *world) service(change func(*Options)) *Service {
	w.t.Helper()
	opts := Options{
		Attestor: w.attestor, Ledger: w.ledger, Known: w.known, Client: w.limited,
		TokenTTL: 5 * time.Minute, VerifyRegistration: true, Clock: w.now,
	}
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func with(policy Policy) func(*Options) {
	return func(opts *Options) { opts.Reattestation = policy }
}

// entry reads an entry of the ledger.
func (w *world) entry(name string) *v1alpha1.NodeAttestation {
	w.t.Helper()
	entry, err := w.ledger.Get(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return entry
}

// secret reads the Secret of a token.
func (w *world) secret(id string) *corev1.Secret {
	w.t.Helper()
	secret, err := w.client.CoreV1().Secrets(ledger.TokenNamespace).Get(context.Background(), ledger.TokenSecretName(id), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// held is a token whose Secret exists.
type held struct {
	id, value  string
	expiration time.Time
	owner      *metav1.OwnerReference
}

// tokens are all that the cluster has.
func (w *world) tokens() []held {
	w.t.Helper()
	list, err := w.client.CoreV1().Secrets(ledger.TokenNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var tokens []held
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
		tokens = append(tokens, held{id, id + "." + string(secret.Data["token-secret"]), end, metav1.GetControllerOf(secret)})
	}
	return tokens
}

// usable reports whether a token is good for a certificate request: whether it
// authenticates, and its entry names it, and it was used for no key.
func (w *world) usable(token held) bool {
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
func (w *world) bind(name string) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Binding = &v1alpha1.TokenBinding{TokenID: entry.Spec.TokenID, PublicKey: "sha256:0123"}
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
}

// reaches puts an entry's token into a phase, as the approver does, and has the
// cache know it.
func (w *world) reaches(name string, phase v1alpha1.Phase) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Status.Phase, entry.Status.TokenID = phase, entry.Spec.TokenID
	if _, err := w.ledger.UpdateStatus(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
	w.caughtUp(w.known)
}

// certified uses the token of an entry.
func (w *world) certified(name string) {
	w.t.Helper()
	w.bind(name)
	w.reaches(name, v1alpha1.Certified)
}

// node has a node registered.
func (w *world) node(name string) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) noNode(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// machine is the identity of machine i-1, i-2 and so on, booted with the world.
func machine(id, node string) *attest.Identity {
	return &attest.Identity{
		Provider: "test", InstanceID: id, NodeName: node, Names: []string{node},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Issued: dawn.Add(-time.Minute),
	}
}

// request is what a machine asks that says its name.
func request(id *attest.Identity) *attest.Request {
	return &attest.Request{NodeName: id.NodeName, RemoteAddr: netip.MustParseAddr("10.0.0.1")}
}

// machines is an attestor that knows which machines have ended.
type machines struct {
	attest func(context.Context, *attest.Request) (*attest.Identity, error)
	ended  map[string]bool
	err    error
}

func (m *machines) Name() string { return "test" }

func (m *machines) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	return m.attest(ctx, req)
}

func (m *machines) Gone(_ context.Context, id, _ string) (bool, error) { return m.ended[id], m.err }

// redeem is a redemption that succeeds.
func redeem(t testing.TB, s *Service, id *attest.Identity) *Grant {
	t.Helper()
	grant, err := s.Redeem(context.Background(), request(id), id)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// refusedWith asserts the code of a refusal.
func refusedWith(t testing.TB, err error, code string) {
	t.Helper()
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) || string(refusal.Code) != code {
		t.Fatalf("error is %v, want a refusal %s", err, code)
	}
}
