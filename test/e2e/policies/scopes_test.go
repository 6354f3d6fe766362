package policies

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// allKinds has rules of every kind.
const allKinds = `{metadata: {name: all-kinds}, spec: {mode: Enforce, subjects: [{namespace: team, name: agent}],
  asNode: true,
  namedAsNode: [{apiGroups: [x.example], resources: [things], verbs: [get, create, update, patch, delete]}],
  selectsNode: [{apiGroups: [""], resources: [pods], verbs: [list, watch, deletecollection], field: spec.nodeName}],
  podsOnNode: [{resources: [pods, pods/eviction], verbs: [create, patch, delete]},
    {apiGroups: [""], resources: [limitranges], verbs: [create, delete], namespaces: [team]}],
  anywhere: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch], namespaces: [team]}]}}`

// scopeRequest is a request with a token, and what the API server says.
type scopeRequest struct {
	what, token, verb, path, body string
	// refused is the message of the refusal; empty if the policies let it pass.
	refused string
}

const (
	things   = "/apis/x.example/v1/things"
	teamPods = "/api/v1/namespaces/team/pods"
	// teamLimits are objects of the core group, which are named like pods for the test.
	teamLimits = "/api/v1/namespaces/team/limitranges"

	byNode = "?fieldSelector=spec.nodeName%3D"
	noNode = "NodeScope all-kinds: tokensWithoutNode: the token is bound to no node"
)

func thingBody(meta string) string {
	return `{"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {` + meta + `}}`
}

func limits(meta string) string {
	return `{"apiVersion": "v1", "kind": "LimitRange", "metadata": {` + meta + `}}`
}

func tokenRequest(bound string) string {
	return `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {` + bound + `}}`
}

func refusedBy(rule, what string) string {
	return "NodeScope all-kinds: " + rule + " refuses a token of node a: " + what
}

func scopeRequests(c *scopeCluster) []scopeRequest {
	const (
		labels   = `{"metadata": {"labels": {"k": "v"}}}`
		eviction = `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "team", "name": "on-b"}}`
		config   = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}`
		status   = `{"status": {"conditions": [{"type": "X", "status": "True"}]}}`
		accounts = "/api/v1/namespaces/team/serviceaccounts/agent/token"
	)
	boundTo := func(pod string) string {
		return tokenRequest(`"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "` + pod + `", "uid": "` + c.pods[pod] + `"}`)
	}
	none := "NodeScope all-kinds: no rule names the request of a token of node a: "
	return []scopeRequest{
		{"namedAsNode: the node's object", "a", "POST", things, thingBody(`"name": "a"`), ""},
		{"namedAsNode: another token's object", "b", "POST", things, thingBody(`"name": "b"`), ""},
		{"namedAsNode: another node's", "a", "POST", things, thingBody(`"name": "b"`), refusedBy("namedAsNode[0]", "CREATE things b")},
		{"namedAsNode: a third name", "a", "POST", things, thingBody(`"name": "c"`), refusedBy("namedAsNode[0]", "CREATE things c")},
		{"namedAsNode: a generated name", "a", "POST", things, thingBody(`"generateName": "a"`), refusedBy("namedAsNode[0]", "CREATE")},
		{"namedAsNode: a create by apply", "a", "APPLY", things + "/c", thingBody(`"name": "c"`), refusedBy("namedAsNode[0]", "CREATE")},
		{"namedAsNode: an update", "a", "PATCH", things + "/own-a", labels, refusedBy("namedAsNode[0]", "UPDATE things own-a")},
		{"namedAsNode: a deletion", "a", "DELETE", things + "/own-a", "", refusedBy("namedAsNode[0]", "DELETE things own-a")},
		{"namedAsNode: a collection", "a", "DELETE", things, "", refusedBy("namedAsNode[0]", "DELETE things")},
		{"selectsNode: pods on the node", "a", "DELETE", teamPods + byNode + "a", "", ""},
		{"selectsNode: other pods", "a", "DELETE", teamPods + byNode + "b", "", refusedBy("asNode, selectsNode[0], podsOnNode[0]", "")},
		{"podsOnNode: a pod on the node", "a", "PATCH", teamPods + "/on-a", labels, ""},
		{"podsOnNode: a pod on another", "a", "PATCH", teamPods + "/on-b", labels, refusedBy("podsOnNode[0]", "UPDATE pods team/on-b")},
		{"podsOnNode: a deletion", "a", "DELETE", teamPods + "/on-b", "", refusedBy("asNode, selectsNode[0], podsOnNode[0]", "DELETE")},
		{"podsOnNode: an eviction is not expressed", "a", "POST", teamPods + "/on-b/eviction", eviction, ""},
		{"podsOnNode: an object that is named like a pod", "a", "POST", teamLimits, limits(`"name": "on-a"`), ""},
		{"podsOnNode: the node of the pod of a name is not expressed", "a", "POST", teamLimits, limits(`"name": "on-b"`), ""},
		{"podsOnNode: nor for a generated name", "a", "POST", teamLimits, limits(`"generateName": "on-a"`), ""},
		{"anywhere: the namespace", "a", "POST", "/api/v1/namespaces/team/configmaps", config, ""},
		{"anywhere: another namespace", "a", "POST", "/api/v1/namespaces/default/configmaps", config, none + "CREATE configmaps"},
		{"asNode: its own status", "a", "PATCH", "/api/v1/nodes/a/status", status, ""},
		{"asNode: another node's status", "a", "PATCH", "/api/v1/nodes/b/status", status, refusedBy("asNode", "UPDATE nodes/status b")},
		{"asNode: its own labels", "a", "PATCH", "/api/v1/nodes/a", labels, refusedBy("asNode", "UPDATE nodes a")},
		{
			"asNode: another node's cordon", "a", "PATCH", "/api/v1/nodes/b", `{"spec": {"unschedulable": true}}`,
			refusedBy("asNode", "UPDATE nodes b"),
		},
		{"asNode: a token that is bound to a pod", "a", "POST", accounts, boundTo("on-a"), ""},
		{"asNode: the pod's node is not expressed", "a", "POST", accounts, boundTo("on-b"), ""},
		{"asNode: a token without a pod", "a", "POST", accounts, tokenRequest(""), refusedBy("asNode", "CREATE serviceaccounts/token")},
		{"no rule", "a", "DELETE", "/api/v1/namespaces/team", "", none + "DELETE namespaces"},
		{"a token without a node", "unbound", "POST", things, thingBody(`"name": "a"`), noNode},
		{"a token that is bound to a pod without a node", "pending", "POST", things, thingBody(`"name": "a"`), noNode},
		{"another account", "other", "POST", things, thingBody(`"name": "c"`), ""},
		{"another account without a node", "other-unbound", "PATCH", "/api/v1/nodes/b", labels, ""},
		{"reads of one object are not seen", "a", "GET", things + "/own-a", "", ""},
		{"reads of all are not seen", "a", "GET", "/api/v1/secrets", "", ""},
		{"reads without a node are not seen", "unbound", "GET", "/api/v1/nodes/b", "", ""},
		{
			"writes of policies are not seen", "a", "DELETE",
			"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/node-authorizer-scope-all-kinds", "", "",
		},
		{"impersonation is not seen", "a as somebody", "POST", things, thingBody(`"name": "c"`), ""},
	}
}

// TestScopePolicies enforces scopes with policies alone, as on an API server that asks no webhook.
func TestScopePolicies(t *testing.T) {
	c := newScopeCluster(t)
	t.Run("accepted", func(t *testing.T) { testAccepted(t, c) })
	for _, action := range []admissionv1.ValidationAction{admissionv1.Audit, admissionv1.Warn, admissionv1.Deny} {
		c.enforce(t, readScopes(t, modeScope(strings.ToLower(string(action)))), action)
	}
	c.enforce(t, readScopes(t, allKinds), "")
	c.waitFor(t, "deny", true)
	c.waitFor(t, "a", true)
	for _, r := range scopeRequests(c) {
		t.Run(r.what, func(t *testing.T) { checkRefusal(t, c.send(t, r), r.refused) })
	}
	t.Run("modes", func(t *testing.T) { testModes(t, c) })
}

// checkRefusal: an empty text is none.
func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v", err)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

func modeScope(name string) string {
	return "{metadata: {name: " + name + "}, spec: {mode: Observe, subjects: [{namespace: team, name: " + name + "}], " +
		"namedAsNode: [{apiGroups: [x.example], resources: [things], verbs: [create]}]}}"
}

func testModes(t *testing.T, c *scopeCluster) {
	foreign := func(token string) error {
		return c.send(t, scopeRequest{token: token, verb: "POST", path: things, body: thingBody(`"name": "c"`)})
	}
	const says = ": namedAsNode[0] refuses a token of node a: CREATE things c"
	if err := foreign("audit"); err != nil || len(c.warnings.take()) > 0 {
		t.Errorf("Audit: %v", err)
	}
	err := await.Until(t.Context(), "the audit log has the refusal", func(context.Context) error {
		events, err := auditLog.Events(0)
		if err != nil {
			return err
		}
		for _, e := range events {
			if strings.Contains(e.Annotations["validation.policy.admission.k8s.io/validation_failure"], "NodeScope audit"+says) {
				return nil
			}
		}
		return errors.New("no annotation")
	})
	if err != nil {
		t.Error(err)
	}
	if err := foreign("warn"); err != nil {
		t.Errorf("Warn: %v", err)
	}
	if got := c.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "NodeScope warn"+says) {
		t.Errorf("Warn: %q", got)
	}
	if err := foreign("deny"); err == nil || !strings.Contains(err.Error(), "NodeScope deny"+says) {
		t.Errorf("Deny: %v", err)
	}
	// Without its binding a policy has no effect.
	err = c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "node-authorizer-scope-deny",
		metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitFor(t, "deny", false)
}

// testAccepted: the API server takes the policies of all scopes that we ship, without a warning. Its type
// checker, which writes into the status, skips policies about all resources.
func testAccepted(t *testing.T, c *scopeCluster) {
	files, err := filepath.Glob("../../../scopes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	scopes, err := generate.Read(t.Context(), files, nil)
	if err != nil || len(scopes) != len(files) {
		t.Fatalf("%d scopes in %d files: %v", len(scopes), len(files), err)
	}
	c.enforce(t, scopes, "")
	if got := c.warnings.take(); len(got) > 0 {
		t.Errorf("warnings: %q", got)
	}
}
