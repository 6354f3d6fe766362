package containment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

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

// If somebody replaces the custom resources by ones without a schema, objects that are written then neither end nor change
// existing ones. A scope that is made invalid keeps its last valid generation.
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
	path := plane.setup.AuthorizationConfig(apiServers[0])
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
