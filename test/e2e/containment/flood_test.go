package containment

import (
	"context"
	"errors"
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
		if err := s.AllReady(t.Context()); err != nil {
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
	t.Cleanup(func() { removeFlood(t) })
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
			o["metadata"].(object)["labels"] = object{"flood": "yes"}
			if err := plane.create(ctx, path, o); err != nil {
				return err
			}
		}
		return nil
	})
	for _, path := range []string{scopesPath, quarantinesPath} {
		must(t, await.Until(t.Context(), "the servers have seen all objects", func(ctx context.Context) error {
			c, err := plane.condition(ctx, path+"/"+fmt.Sprint("flood-", n-1))
			if err == nil && c.Status == "" {
				err = fmt.Errorf("its condition is %+v", c)
			}
			return err
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

func removeFlood(t *testing.T) {
	t.Helper()
	for _, path := range []string{scopesPath, quarantinesPath} {
		must(t, plane.drop(context.Background(), path+"?labelSelector=flood%3Dyes"))
	}
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

// hostile are specs that the schema of the custom resources does not accept.
func hostile() map[string]map[string]any {
	megabyte := strings.Repeat("x", 1<<20)
	subjects := func(n int) (all []any) {
		for i := range n {
			all = append(all, object{"namespace": "kube-system", "name": fmt.Sprint("hostile-", i)})
		}
		return all
	}
	scope := func(more object) object {
		spec := object{"mode": "Enforce", "subjects": subjects(1)}
		for key, value := range more {
			spec[key] = value
		}
		return spec
	}
	return map[string]map[string]any{
		scopesPath: {
			"text": megabyte, "number": 7, "list": []any{}, "empty": object{}, "none": nil,
			"mode": object{"mode": "Perhaps", "subjects": subjects(1)}, "mode-number": object{"mode": 7, "subjects": subjects(1)},
			"subjects":    object{"mode": "Enforce", "subjects": subjects(20_000)},
			"no-subjects": object{"mode": "Enforce", "subjects": []any{}},
			"everybody":   object{"mode": "Enforce", "subjects": []any{object{"namespace": "*"}, object{"namespace": ""}, object{}}},
			"rules":       scope(object{"namedAsNode": []any{object{"apiGroups": megabyte}}}),
			"kinds":       scope(object{"anywhere": object{"a": "b"}}),
			"long":        scope(object{"anywhere": []any{object{"verbs": []any{"get"}, "nonResourceURLs": []any{megabyte}}}}),
			"unknown":     scope(object{"more": megabyte}), "effect": scope(object{"otherwise": "Grant"}),
		},
		quarantinesPath: {
			"text": megabyte, "number": 7, "list": []any{}, "empty": object{}, "none": nil,
			"both": object{"node": "x", "credential": "JTI=1"}, "node-number": object{"node": 7}, "name": object{"node": "*"},
			"reason": object{"node": "x", "reason": megabyte}, "time": object{"node": "x", "expirationTime": "tomorrow"},
			"allow": object{"node": "x", "allow": "everything"},
			"everything": object{"node": nodeB, "allow": []any{object{
				"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}, "nonResourceURLs": []any{"*"},
			}}},
		},
	}
}

// If somebody replaces the custom resources by ones without a schema, what is written then neither ends nor changes
// what stands. A scope that is made invalid keeps its last valid generation.
func TestObjectsWithoutSchema(t *testing.T) {
	g := guard(t)
	for kind, path := range map[string]string{v1alpha1.NodeScopeKind: scopesPath, v1alpha1.QuarantineKind: quarantinesPath} {
		withoutSchema(t, strings.ToLower(kind)+"s.policy.node-authorizer.io")
		for hostileName, spec := range hostile()[path] {
			must(t, plane.writeUnchecked(t.Context(), path, policyObject(kind, "hostile-"+hostileName, spec)))
			t.Cleanup(func() { must(t, plane.drop(context.Background(), path+"/hostile-"+hostileName)) })
		}
	}
	// A scope that is valid when it is read, so that all before have been.
	last := agentOf(t, "kube-system", "hostile-last", nodeA)
	must(t, plane.grant(t.Context(), "kube-system", "hostile-last", rule("", "nodes", "get")))
	must(t, until(t.Context(), last, get("/api/v1/nodes/"+nodeB), false))
	enforceScope(t, "hostile-last", v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "hostile-last"}}, Mode: v1alpha1.Enforce,
		NamedAsNode: []v1alpha1.NamedRule{nodeRule("nodes", "get")},
	})
	must(t, until(t.Context(), last, get("/api/v1/nodes/"+nodeB), true))
	g.check(t, "with invalid objects")

	must(t, plane.admin.must(t.Context(), patch(scopesPath+"/hostile-last", object{"spec": object{"mode": "Off", "subjects": 7}}), nil))
	must(t, await.Until(t.Context(), "the scope is not accepted", func(ctx context.Context) error {
		c, err := plane.condition(ctx, scopesPath+"/hostile-last")
		if err == nil && c.Status != "False" {
			err = fmt.Errorf("its condition is %+v", c)
		}
		return err
	}))
	if a := send(t, last, get("/api/v1/nodes/"+nodeB)); !a.refused() {
		t.Errorf("the scope has ended: %s", a)
	}
	must(t, restartServer(t.Context(), 0))
	g.check(t, "after a restart with invalid objects")
}

// withoutSchema replaces the schema of a custom resource until the test ends.
func withoutSchema(t *testing.T, name string) {
	t.Helper()
	var crd object
	must(t, plane.admin.must(t.Context(), get(crdsPath+"/"+name), &crd))
	open := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	change := func(ctx context.Context, schema any) error {
		return plane.admin.must(ctx, request{
			method: http.MethodPatch, path: crdsPath + "/" + name, contentType: jsonPatch,
			body: []any{object{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}},
		}, nil)
	}
	version := crd["spec"].(object)["versions"].([]any)[0].(object)
	schema := version["schema"].(object)["openAPIV3Schema"]
	must(t, change(t.Context(), open))
	t.Cleanup(func() { must(t, change(context.Background(), schema)) })
}

// writeUnchecked creates an object as soon as the API server has dropped the schema.
func (w *world) writeUnchecked(ctx context.Context, path string, o object) error {
	var last error
	err := await.Until(ctx, fmt.Sprintf("%s %v is written", path, o["metadata"]), func(ctx context.Context) error {
		err := w.create(ctx, path, o)
		if ctx.Err() == nil {
			last = err
		}
		return err
	})
	if err != nil {
		err = errors.Join(err, last)
	}
	return err
}

// A broken match condition ends nothing: an API server keeps the configuration that it has, and one whose condition
// fails for a request refuses the request.
func TestBrokenMatchConditions(t *testing.T) {
	g := guard(t)
	path := plane.apiServerFile(0, "authorization.yaml")
	text, err := os.ReadFile(path)
	must(t, err)
	const first = "    matchConditions:\n"
	write := func(condition string) {
		t.Helper()
		before, after, found := strings.Cut(string(text), first)
		if !found {
			t.Fatalf("the configuration has no match conditions:\n%s", text)
		}
		changed := before + first + "    - expression: \"" + condition + "\"\n" + after
		must(t, os.WriteFile(path, []byte(changed), 0o600))
	}
	t.Cleanup(func() {
		must(t, os.WriteFile(path, text, 0o600))
		must(t, await.Until(context.Background(), "the API server serves again", func(ctx context.Context) error {
			return g.free.must(ctx, get("/api/v1/nodes/"+nodeA), nil)
		}))
	})
	failures := reloads(t, "failure")
	write("request.nothing")
	must(t, await.Until(t.Context(), "the API server has read the file", func(ctx context.Context) error {
		if now := reloads(t, "failure"); now == failures {
			return fmt.Errorf("%s reloads have failed", now)
		}
		return nil
	}))
	g.check(t, "with a condition that is not valid")
	write("request.extra['nothing'].size() > 0")
	must(t, await.Until(t.Context(), "the API server does not serve", func(ctx context.Context) error {
		a, err := g.free.do(ctx, get("/api/v1/nodes/"+nodeA))
		if err == nil && a.status != http.StatusInternalServerError {
			err = errors.New(a.String())
		}
		return err
	}))
	if a := send(t, g.scoped, get("/api/v1/nodes/"+nodeB)); a.status != http.StatusInternalServerError {
		t.Errorf("with a condition that fails: %s", a)
	}
}

// reloads returns how often the API server has reloaded its authorization, with a result.
func reloads(t *testing.T, status string) string {
	t.Helper()
	a := send(t, plane.admin, get("/metrics"))
	for line := range strings.Lines(string(a.body)) {
		if strings.HasPrefix(line, "apiserver_authorization_config_controller_automatic_reloads_total") &&
			strings.Contains(line, `status="`+status+`"`) {
			return strings.Fields(line)[1]
		}
	}
	return "0"
}
