package attackpaths

import (
	"net/http"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// TestWhatTheServerAsksForAnObjectThatIsCreatedByName shows for each kind that it takes patch and create to apply an object
// with a name, and update and create to put one, which only roles and bindings allow.
func TestWhatTheServerAsksForAnObjectThatIsCreatedByName(t *testing.T) {
	ctx, w := t.Context(), newest
	if err := w.reset(ctx); err != nil {
		t.Fatal(err)
	}
	empty := map[string]any{}
	request, err := newCertificateRequest(holding{Kind: attackpaths.User, Name: "x"}, "named", "kubernetes.io/kube-apiserver-client")
	if err != nil {
		t.Fatal(err)
	}
	api := attackerAPI()
	apiName := api["metadata"].(map[string]any)["name"].(string)
	bodies := map[resource]any{
		pods: podSpec{name: "named"}.object(), secrets: empty, configMaps: empty, serviceAccounts: empty, namespaces: empty, nodes: empty,
		claims: hostClaim("named"), volumes: hostVolume("named"), signingRequests: request.object, apiServices: api,
		validatingWebhooks: empty, mutatingWebhooks: empty, mutatingPolicies: mutatingPolicy(), mutatingBindings: mutatingBinding(),
		roles: empty, clusterRoles: empty,
		roleBindings:        map[string]any{"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "empty"}},
		clusterRoleBindings: map[string]any{"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "empty"}},
	}
	for _, r := range workloads {
		bodies[r] = podSpec{name: "named"}.workloadObject(r)
	}
	sets := []struct {
		user, verbs string
		// applies and puts report whether the rights are enough for such a request.
		applies, puts bool
	}{
		{"both", "create,patch", true, false},
		{"puts", "create,update", false, true},
		{"creates", "create", false, false},
		{"patches", "patch,update", false, false},
	}
	text := everyCase + clusterRole("empty")
	for _, s := range sets {
		var rules []string
		for r := range bodies {
			rules = append(rules, s.verbs+" "+r.name+"@"+r.group+" named,"+apiName)
		}
		text += roleOf(s.user, "", "user "+s.user, rules...)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	for r, body := range bodies {
		name, namespace := "named", ""
		if r == apiServices {
			name = apiName
		}
		if r.namespaced {
			namespace = "shop"
		}
		kind, ok := kindAt(r.in(namespace))
		if !ok {
			t.Fatalf("%s has no kind", r.name)
		}
		content := withName(body, kind, name)
		at := r.at(namespace, name) + "?dryRun=All&fieldManager=test"
		for _, s := range sets {
			c := w.admin.with(http.Header{"Impersonate-User": {s.user}})
			for method, wanted := range map[string]bool{http.MethodPatch: s.applies, http.MethodPut: s.puts && r.group == rbacGroup} {
				contentType := map[string]string{http.MethodPatch: applyPatch, http.MethodPut: "application/json"}[method]
				a := c.do(ctx, method, at, contentType, content)
				if made := a.status == http.StatusCreated; made != wanted {
					t.Errorf("%s with %s of that name: %s, want it created: %v", r.name, s.verbs, a, wanted)
				}
			}
			if a := c.post(ctx, dry(r.in(namespace)), content); !a.refused() {
				t.Errorf("%s with %s of some name: %s", r.name, s.verbs, a)
			}
		}
	}
}
