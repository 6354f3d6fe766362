package containment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// credential is a user on one API server, with a request that it may send.
type credential struct {
	name string
	*client
	request
}

// credentials returns the credentials of a node on both API servers: its certificate, and tokens of its pods.
func credentials(t *testing.T, node string) (all []credential) {
	t.Helper()
	ctx := t.Context()
	certificate, key, err := plane.ClientCertificate("of-"+node, "system:node:"+node, "system:nodes")
	must(t, err)
	config := plane.tokenConfig("")
	config.CertFile, config.KeyFile = certificate, key
	must(t, rest.LoadTLSFiles(config)) // with files, client-go closes all connections when the next round writes them
	both := func(name string, r request, c *client, other *client) {
		all = append(all, credential{name + " on API server 1", c, r}, credential{name + " on API server 2", other, r})
	}
	first, err := newClient(config)
	must(t, err)
	second, err := newClient(plane.onOther(config))
	must(t, err)
	both("the certificate of "+node, get("/api/v1/nodes/"+node), first, second)
	must(t, plane.placeAgent(ctx, "kube-system", "quarantined"))
	must(t, plane.grant(ctx, "kube-system", "quarantined", rule("", "nodes services", "get list watch create")))
	for _, pod := range []object{nil, {"kind": "Node", "apiVersion": "v1", "name": node, "uid": uidOf(t, "/api/v1/nodes/"+node)}} {
		token, name := "", "the token of a pod on "+node
		if pod == nil {
			token, err = plane.tokenOf(ctx, "kube-system", "quarantined", node)
		} else {
			name = "a token for " + node
			token, err = plane.requestToken(ctx, "kube-system", "quarantined", pod)
		}
		must(t, err)
		config := plane.tokenConfig(token)
		first, err := newClient(config)
		must(t, err)
		second, err := newClient(plane.onOther(config))
		must(t, err)
		both(name, get("/api/v1/services"), first, second)
	}
	for _, c := range all {
		must(t, until(ctx, c.client, c.request, false))
	}
	return all
}

// awaitAll waits until all credentials are refused, or none is, and returns how long the slowest took.
func awaitAll(t *testing.T, all []credential, refused bool) time.Duration {
	t.Helper()
	began := time.Now()
	var waiting sync.WaitGroup
	errs := make([]error, len(all))
	for i, c := range all {
		waiting.Go(func() { errs[i] = busyUntil(t.Context(), c, refused) })
	}
	waiting.Wait()
	must(t, errors.Join(errs...))
	return time.Since(began)
}

// busyUntil asks without a pause until the answer is the expected one.
func busyUntil(ctx context.Context, c credential, refused bool) error {
	ctx, cancel := context.WithTimeout(ctx, await.Timeout)
	defer cancel()
	for {
		a, err := c.do(ctx, c.request)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if a.refused() == refused {
			return nil
		}
	}
}

func expectAll(t *testing.T, all []credential, refused bool) {
	t.Helper()
	for _, c := range all {
		if a := send(t, c.client, c.request); a.refused() != refused {
			t.Errorf("%s: %s; refused: want %t", c.name, a, refused)
		}
	}
}

// startQuarantine writes a Quarantine, and does not wait for its effect. When the test ends, it removes the Quarantine
// and waits until the credentials are not refused any more.
func startQuarantine(t *testing.T, name string, spec object, held ...credential) {
	t.Helper()
	must(t, plane.admin.must(t.Context(), post(quarantinesPath, object{
		"apiVersion": "policy.node-authorizer.io/v1alpha1", "kind": v1alpha1.QuarantineKind, "metadata": meta("", name), "spec": spec,
	}), nil))
	t.Cleanup(func() {
		endQuarantine(t, name)
		for _, c := range held {
			must(t, busyUntil(context.Background(), c, false))
		}
	})
}

func endQuarantine(t *testing.T, name string) {
	t.Helper()
	must(t, plane.drop(context.Background(), quarantinesPath+"/"+name))
}

// repetitions is how often the time until a Quarantine has its effect is measured.
func repetitions(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("QUARANTINE_REPETITIONS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	return 5
}

// A Quarantine takes effect on every credential of the node on both API servers, and on no other node. It ends when
// it is deleted. The log says how long both take.
func TestQuarantineTakesEffectEverywhere(t *testing.T) {
	held, free := credentials(t, nodeA), credentials(t, nodeB)
	var slowest, slowestRelease time.Duration
	for i := range repetitions(t) {
		name := fmt.Sprint("everywhere-", i)
		began := time.Now()
		startQuarantine(t, name, object{"node": nodeA, "reason": "a test"}, held...)
		awaitAll(t, held, true)
		slowest = max(slowest, time.Since(began))
		expectAll(t, held, true)
		expectAll(t, free, false)
		began = time.Now()
		endQuarantine(t, name)
		awaitAll(t, held, false)
		slowestRelease = max(slowestRelease, time.Since(began))
	}
	t.Logf("measured: of %d quarantines, each on %d credentials of a node on two API servers, the slowest took effect on all of them "+
		"%s after the write began, and the slowest release %s", repetitions(t), len(held)/2, slowest.Round(time.Millisecond),
		slowestRelease.Round(time.Millisecond))
}

// The requests that a person needs to look and drain stay allowed, if the Quarantine says so, and nothing else.
func TestQuarantineWithExceptions(t *testing.T) {
	held := credentials(t, nodeA)
	startQuarantine(t, "exceptions", object{"node": nodeA, "allow": []any{
		object{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"get"}},
		object{
			"apiGroups": []any{""}, "resources": []any{"services"}, "verbs": []any{"list"},
			"serviceAccounts": []any{object{"namespace": "kube-system", "name": "quarantined"}},
		},
	}}, held...)
	for i := range held {
		allowed := held[i]
		refused := held[i]
		refused.request = get("/api/v1/namespaces/" + appNamespace + "/services/none") // no rule names get
		if strings.Contains(held[i].name, "certificate") {
			refused.request = get("/api/v1/services")
		}
		awaitAll(t, []credential{refused}, true)
		expectAll(t, []credential{allowed}, false)
	}
}

// A quarantined credential does not affect others of the same account and node.
func TestQuarantineOfOneCredential(t *testing.T) {
	held := credentials(t, nodeA)
	token := held[2:4]
	var review struct {
		Status struct {
			UserInfo struct{ Extra map[string][]string }
		}
	}
	must(t, token[0].must(t.Context(), post("/apis/authentication.k8s.io/v1/selfsubjectreviews", object{}), &review))
	id := review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"][0]
	startQuarantine(t, "credential", object{"credential": id}, token...)
	awaitAll(t, token, true)
	expectAll(t, append(held[:2:2], held[4:]...), false)
}

// Not more nodes than the server's configuration allows are quarantined at once: here half of them.
func TestNeverTheWholeCluster(t *testing.T) {
	held, free := credentials(t, nodeA), credentials(t, nodeB)
	startQuarantine(t, "limit-a", object{"node": nodeA}, held...)
	awaitAll(t, held, true)
	startQuarantine(t, "limit-b", object{"node": nodeB}, free...)
	must(t, await.Until(t.Context(), "the second Quarantine is not accepted", func(ctx context.Context) error {
		c, err := plane.condition(ctx, quarantinesPath+"/limit-b")
		if err == nil && c.Status != "False" {
			err = fmt.Errorf("its condition is %+v", c)
		}
		return err
	}))
	expectAll(t, free, false)
	expectAll(t, held, true)
}

func TestQuarantineExpires(t *testing.T) {
	held := credentials(t, nodeA)
	end := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	startQuarantine(t, "expires", object{"node": nodeA, "expirationTime": end}, held...)
	awaitAll(t, held, true)
	awaitAll(t, held, false)
	if _, err := plane.condition(t.Context(), quarantinesPath+"/expires"); err != nil {
		t.Errorf("the object of an expired Quarantine: %v", err)
	}
}

// While a Quarantine stands, no restart of anything lets a single request pass.
func TestQuarantineSurvivesRestarts(t *testing.T) {
	held, free := credentials(t, nodeA), credentials(t, nodeB)
	startQuarantine(t, "restarts", object{"node": nodeA}, held...)
	awaitAll(t, held, true)
	for _, restart := range []struct {
		what string
		do   func() error
	}{
		{"the server beside API server 1", func() error { return restartServer(t.Context(), 0) }},
		{"a crash of the server beside API server 2", func() error {
			if err := plane.servers[1].Kill(); err != nil {
				return err
			}
			return plane.servers[1].Start(t.Context())
		}},
		{"a crash of API server 1", func() error {
			if err := plane.Kill(localplane.APIServer); err != nil {
				return err
			}
			return plane.StartComponent(t.Context(), localplane.APIServer)
		}},
		{"a crash of API server 2", func() error {
			if err := plane.other.Kill(); err != nil {
				return err
			}
			return plane.other.Start(t.Context())
		}},
		{"etcd", func() error { return plane.Restart(t.Context(), localplane.Etcd) }},
	} {
		t.Run(restart.what, func(t *testing.T) {
			stop := watchRefusals(t, held)
			err := restart.do()
			// It has ended when others are served again.
			for _, c := range free {
				must(t, until(t.Context(), c.client, c.request, false))
			}
			sent := stop()
			must(t, err)
			expectAll(t, held, true)
			if sent == 0 {
				t.Error("no request was sent meanwhile")
			}
		})
	}
}

func restartServer(ctx context.Context, i int) error {
	if err := plane.servers[i].Stop(); err != nil {
		return err
	}
	return plane.servers[i].Start(ctx)
}

// watchRefusals sends requests all the time, of which none may succeed. Stop returns how many were refused.
func watchRefusals(t *testing.T, all []credential) (stop func() (refused int)) {
	t.Helper()
	var sending sync.WaitGroup
	var stopped atomic.Bool
	counts := make([]int, len(all))
	for i, c := range all {
		sending.Go(func() {
			for !stopped.Load() {
				a, err := c.do(t.Context(), c.request)
				switch {
				case err != nil: // the API server does not run
				case a.status == http.StatusOK:
					t.Errorf("%s: %s", c.name, a)
					return
				default:
					counts[i]++
				}
			}
		})
	}
	return func() (refused int) {
		stopped.Store(true)
		sending.Wait()
		for _, n := range counts {
			refused += n
		}
		return refused
	}
}
