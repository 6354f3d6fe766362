package containment

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// floodSize is the number of objects of each kind.
func floodSize(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("CONTAINMENT_FLOOD"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	return 150
}

// guarded are a NodeScope and a Quarantine that stand, and users whom neither concerns.
type guarded struct {
	scoped, free         *client
	quarantined, outside []credential
}

func guard(t *testing.T) *guarded {
	t.Helper()
	name := "guarded-" + strings.ToLower(t.Name()[len("Test"):])
	g := &guarded{scoped: agentOf(t, "kube-system", name, nodeA), free: agentOf(t, "kube-system", name+"-free", nodeA)}
	for _, account := range []string{name, name + "-free"} {
		must(t, plane.grant(t.Context(), "kube-system", account, rule("", "nodes", "get list")))
	}
	g.quarantined, g.outside = credentials(t, nodeB), credentials(t, nodeA)
	must(t, until(t.Context(), g.scoped, get("/api/v1/nodes/"+nodeB), false))
	must(t, until(t.Context(), g.free, get("/api/v1/nodes/"+nodeB), false))
	enforceScope(t, name, v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: name}}, Mode: v1alpha1.Enforce,
		NamedAsNode: []v1alpha1.NamedRule{nodeRule("nodes", "get")},
	})
	startQuarantine(t, name, object{"node": nodeB}, g.quarantined...)
	must(t, until(t.Context(), g.scoped, get("/api/v1/nodes/"+nodeB), true))
	awaitAll(t, g.quarantined, true)
	// Of objects of the same second, the one whose name comes first counts as the older one.
	must(t, await.Until(t.Context(), "the Quarantine is older than all others will be", func(ctx context.Context) error {
		var o struct {
			Metadata struct{ CreationTimestamp time.Time }
		}
		err := plane.admin.must(ctx, get(quarantinesPath+"/"+name), &o)
		if err == nil && time.Since(o.Metadata.CreationTimestamp) < time.Second {
			err = fmt.Errorf("it was made at %s", o.Metadata.CreationTimestamp)
		}
		return err
	}))
	return g
}

// check shows that both stand, and that nobody else is refused.
func (g *guarded) check(t *testing.T, when string) {
	t.Helper()
	if a := send(t, g.scoped, get("/api/v1/nodes/"+nodeB)); !a.refused() {
		t.Errorf("%s: the scope lets pass another node: %s", when, a)
	}
	for _, c := range []*client{g.scoped, g.free} {
		if a := send(t, c, get("/api/v1/nodes/"+nodeA)); a.status != http.StatusOK {
			t.Errorf("%s: the own node: %s", when, a)
		}
	}
	expectAll(t, g.quarantined, true)
	expectAll(t, g.outside, false)
	for _, s := range plane.servers {
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// latency sends requests until done is closed, and returns how long they took, sorted.
func latency(t *testing.T, c *client, r request, done <-chan struct{}) <-chan []time.Duration {
	t.Helper()
	result := make(chan []time.Duration, 1)
	go func() {
		var took []time.Duration
		for {
			select {
			case <-done:
				slices.Sort(took)
				result <- took
				return
			default:
			}
			began := time.Now()
			a, err := c.do(context.Background(), r)
			if err != nil || a.status != http.StatusOK {
				t.Errorf("%s: %s, %v", r, a, err)
			}
			took = append(took, time.Since(began))
		}
	}()
	return result
}

// inParallel makes objects.
func inParallel(t *testing.T, n int, make func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error { return make(ctx, i) })
	}
	must(t, group.Wait())
}

func policyObject(kind, name string, spec any) object {
	return object{"apiVersion": "policy.node-authorizer.io/v1alpha1", "kind": kind, "metadata": meta("", name), "spec": spec}
}

// Thousands of objects, some of them with annotations as large as an API server takes, neither end what stands nor
// slow down others. CONTAINMENT_FLOOD sets how many.
func TestFlood(t *testing.T) {
	g := guard(t)
	n := floodSize(t)
	done := make(chan struct{})
	took := latency(t, g.free, get("/api/v1/nodes/"+nodeA), done)
	t.Cleanup(func() { removeFlood(t, n) })
	large := strings.Repeat("x", 200<<10)
	inParallel(t, n, func(ctx context.Context, i int) error {
		q := policyObject(v1alpha1.QuarantineKind, fmt.Sprint("flood-", i), object{"node": fmt.Sprint("flood-", i)})
		s := policyObject(v1alpha1.NodeScopeKind, fmt.Sprint("flood-", i), object{
			"mode": "Enforce", "subjects": []any{object{"namespace": "flood", "name": fmt.Sprint("account-", i)}},
		})
		if i%50 == 0 {
			q["metadata"].(object)["annotations"], s["metadata"].(object)["annotations"] = object{"a": large}, object{"a": large}
		}
		for path, o := range map[string]object{quarantinesPath: q, scopesPath: s} {
			if err := plane.create(ctx, path, o); err != nil {
				return err
			}
		}
		return nil
	})
	for _, server := range plane.servers {
		must(t, await.Until(t.Context(), "the server has seen all objects", func(ctx context.Context) error {
			if seen := objects(t, server); seen < float64(2*n) {
				return fmt.Errorf("it has %.0f", seen)
			}
			return nil
		}))
	}
	g.check(t, "after the flood")
	close(done)
	durations := <-took
	at := func(percent int) time.Duration {
		return durations[(len(durations)-1)*percent/100].Round(time.Microsecond)
	}
	t.Logf("measured: while %d NodeScopes and %d Quarantines were made, %d requests of another account took %s in the middle, "+
		"%s at the 99th percentile and %s at most; resident memory of the servers: %s",
		n, n, len(durations), at(50), at(99), at(100), memories(t))
}

// removeFlood deletes the objects one by one: an API server ends a deletion of all of them after a minute.
func removeFlood(t *testing.T, n int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		for _, path := range []string{scopesPath, quarantinesPath} {
			group.Go(func() error { return plane.drop(context.Background(), path+"/"+fmt.Sprint("flood-", i)) })
		}
	}
	must(t, group.Wait())
}

func memories(t *testing.T) string {
	t.Helper()
	return memory(t, plane.servers[0]) + " and " + memory(t, plane.servers[1])
}

func memory(t *testing.T, s *server.Server) string {
	t.Helper()
	text, err := s.Metrics(t.Context())
	must(t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "process_resident_memory_bytes "); ok {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(t, err)
			return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
		}
	}
	return "unknown"
}

// objects returns how many NodeScopes and Quarantines a server knows, with any status.
func objects(t *testing.T, s *server.Server) (sum float64) {
	t.Helper()
	text, err := s.Metrics(t.Context())
	must(t, err)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "node_authorizer_containment_objects{") {
			number, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			must(t, err)
			sum += number
		}
	}
	return sum
}
