package containment

import (
	"net/http"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

const identityUser = "system:serviceaccount:" + bypassNamespace + ":identity"

// as returns a client that impersonates a user, with a node in the extra values if there is one.
func as(c *client, user, node string) *client {
	headers := http.Header{"Impersonate-User": {user}}
	if node != "" {
		headers["Impersonate-Extra-Authentication.kubernetes.io%2fnode-Name"] = []string{node}
	}
	return c.with(headers)
}

// A user with the name of a scoped account is held to the node of its token, for any object that the token is bound
// to, and for any user that impersonates it.
func TestIdentities(t *testing.T) {
	ctx := t.Context()
	own, other := get("/api/v1/nodes/"+nodeA), get("/api/v1/nodes/"+nodeB)
	onA, onB := agentOf(t, bypassNamespace, "identity", nodeA), agentOf(t, bypassNamespace, "identity", nodeB)
	must(t, plane.grant(ctx, bypassNamespace, "identity", rule("*", "*", "*")))
	bound := func(object object) *client {
		token, err := plane.requestToken(ctx, bypassNamespace, "identity", object)
		must(t, err)
		c, err := plane.token(token)
		must(t, err)
		return c
	}
	secrets := "/api/v1/namespaces/" + bypassNamespace + "/secrets"
	must(t, plane.create(ctx, secrets, object{"metadata": meta(bypassNamespace, "of-token")}))
	toNothing := bound(nil)
	toNode := bound(object{"kind": "Node", "apiVersion": "v1", "name": nodeA, "uid": uidOf(t, "/api/v1/nodes/"+nodeA)})
	toSecret := bound(object{"kind": "Secret", "apiVersion": "v1", "name": "of-token", "uid": uidOf(t, secrets+"/of-token")})
	impersonator := agentOf(t, bypassNamespace, "impersonator", nodeA)
	must(t, plane.grant(ctx, bypassNamespace, "impersonator", rule("", "serviceaccounts", "impersonate")))
	master := plane.admin

	deleted := deletedPodToken(t)
	must(t, until(ctx, onA, other, false))
	must(t, until(ctx, as(impersonator, identityUser, ""), own, false))
	enforceScope(t, "identity", v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: bypassNamespace, Name: "identity"}}, Mode: v1alpha1.Enforce,
		NamedAsNode: []v1alpha1.NamedRule{nodeRule("nodes", "get")},
	})
	must(t, until(ctx, onA, other, true))

	passing := map[string]struct {
		*client
		request
	}{
		"the token of the pod on A, about A": {onA, own}, "the token of the pod on B, about B": {onB, other},
		"a token that is bound to node A, about A":                    {toNode, own},
		"an administrator who names the node, about it":               {as(master, identityUser, nodeB), other},
		"a user without a scope that impersonates nobody, about none": {impersonator, get("/version")},
	}
	for name, test := range passing {
		t.Run(name, func(t *testing.T) {
			if a := send(t, test.client, test.request); a.status != http.StatusOK {
				t.Errorf("got %s", a)
			}
		})
	}
	t.Run("the token of the pod on A, about B", func(t *testing.T) {
		checkRefused(t, other, send(t, onA, other), nodescope.ScopeNameNotNode)
	})
	t.Run("the token of the pod on B, about A", func(t *testing.T) {
		checkRefused(t, own, send(t, onB, own), nodescope.ScopeNameNotNode)
	})
	t.Run("a token that is bound to node A, about B", func(t *testing.T) {
		checkRefused(t, other, send(t, toNode, other), nodescope.ScopeNameNotNode)
	})
	t.Run("a token that is bound to nothing", func(t *testing.T) {
		checkRefused(t, own, send(t, toNothing, own), nodescope.ScopeTokenWithoutNode)
	})
	t.Run("a token that is bound to a secret", func(t *testing.T) {
		checkRefused(t, own, send(t, toSecret, own), nodescope.ScopeTokenWithoutNode)
	})
	t.Run("the token of a pod that was deleted", func(t *testing.T) {
		if a := send(t, deleted, own); a.status != http.StatusUnauthorized {
			t.Errorf("got %s", a)
		}
	})
	t.Run("an impersonator, without a node", func(t *testing.T) {
		checkRefused(t, own, send(t, as(impersonator, identityUser, ""), own), nodescope.ScopeTokenWithoutNode)
	})
	t.Run("an impersonator, with extra values that it may not set", func(t *testing.T) {
		if a := send(t, as(impersonator, identityUser, nodeB), other); !a.refused() {
			t.Errorf("got %s", a)
		}
	})
	t.Run("an administrator, without a node", func(t *testing.T) {
		checkRefused(t, own, send(t, as(master, identityUser, ""), own), nodescope.ScopeTokenWithoutNode)
	})
	t.Run("an administrator, with two nodes", func(t *testing.T) {
		c := as(master, identityUser, nodeA)
		c.headers["Impersonate-Extra-Authentication.kubernetes.io%2fnode-Name"] = []string{nodeA, nodeB}
		if a := send(t, c, own); !a.refused() {
			t.Errorf("got %s", a)
		}
	})
	// RBAC lets the account impersonate everybody, with any extra values. No rule of the scope names that.
	for name, c := range map[string]*client{
		"itself on another node":     as(onA, identityUser, nodeB),
		"an account without a scope": as(onA, "system:serviceaccount:kube-system:default", ""),
		"another node":               as(onA, "system:node:"+nodeB, ""), "the own node": as(onA, "system:node:"+nodeA, ""),
		"masters": onA.with(http.Header{"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}}),
	} {
		t.Run("the account impersonates "+name, func(t *testing.T) {
			checkRefused(t, other, send(t, c, other), nodescope.ScopeNoRule)
		})
	}
}

// deletedPodToken returns a client with a token whose pod has been deleted since.
func deletedPodToken(t *testing.T) *client {
	t.Helper()
	const pod = "short"
	must(t, plane.create(t.Context(), podsPath(bypassNamespace), podObject(bypassNamespace, pod, "identity", nodeA)))
	token, err := plane.tokenOfPod(t.Context(), bypassNamespace, "identity", pod)
	must(t, err)
	must(t, plane.drop(t.Context(), podsPath(bypassNamespace)+"/"+pod+"?gracePeriodSeconds=0"))
	c, err := plane.token(token)
	must(t, err)
	return c
}

// A scope with asNode lets an account do what its node may: directly, and as its node by constrained
// impersonation (KEP-5284).
func TestAsNode(t *testing.T) {
	ctx := t.Context()
	onA := agentOf(t, bypassNamespace, "as-node", nodeA)
	const all = "get list watch create update patch delete deletecollection"
	must(t, plane.grant(ctx, bypassNamespace, "as-node",
		rule("", "nodes nodes/status pods pods/status pods/eviction secrets configmaps serviceaccounts/token", all),
		rule("coordination.k8s.io", "leases", all),
		rule("authentication.k8s.io", "nodes", "impersonate:associated-node"),
		rule("", "nodes secrets", "impersonate-on:associated-node:get"),
	))
	nodeLease := "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	secretsOf := "/api/v1/namespaces/" + appNamespace + "/secrets/of-"
	tokens := accountPath(appNamespace) + "/app/token"
	ref := func(pod string) object {
		return object{"spec": object{"boundObjectRef": object{
			"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uidOf(t, podsOfApp+"/"+pod),
		}}}
	}
	label := func(key string) object { return object{"metadata": object{"labels": object{key: "x"}}} }
	impersonating := func(node string) *client { return as(onA, "system:node:"+node, "") }
	tests := []struct {
		name string
		*client
		request
		passes bool
	}{
		{"the own node", onA, get("/api/v1/nodes/" + nodeA), true},
		{"another node", onA, get("/api/v1/nodes/" + nodeB), false},
		{"all nodes", onA, get("/api/v1/nodes"), false},
		{"a secret of a pod of the node", onA, get(secretsOf + nodeA), true},
		{"a secret of a pod of another node", onA, get(secretsOf + nodeB), false},
		{"all secrets", onA, get("/api/v1/secrets"), false},
		{"the node's lease", onA, post(nodeLease+"?dryRun=All", lease(object{"name": nodeA})), true},
		{"another node's lease", onA, post(nodeLease+"?dryRun=All", lease(object{"name": nodeB})), false},
		{"a lease in another namespace", onA, post(leasesPath+"?dryRun=All", lease(object{"name": nodeA})), false},
		{"a label", onA, patch("/api/v1/nodes/"+nodeA+"?dryRun=All", label("example.com/a")), true},
		{"a restricted label", onA, patch("/api/v1/nodes/"+nodeA+"?dryRun=All", label("node-restriction.kubernetes.io/a")), false},
		{"a restricted label through the status", onA, patch("/api/v1/nodes/"+nodeA+"/status?dryRun=All",
			label("node-restriction.kubernetes.io/a")), false},
		{"a taint", onA, patch("/api/v1/nodes/"+nodeA+"?dryRun=All",
			object{"spec": object{"taints": []any{object{"key": "a", "effect": "NoSchedule"}}}}), false},
		{"a token for a pod of the node", onA, post(tokens, ref(appPod(nodeA))), true},
		{"a token for a pod of another node", onA, post(tokens, ref(appPod(nodeB))), false},
		{"a token for no pod", onA, post(tokens, object{"spec": object{}}), false},
		{"the end of a pod of the node", onA, remove(podsOfApp + "/" + appPod(nodeA) + "?dryRun=All"), true},
		{"the end of a pod of another node", onA, remove(podsOfApp + "/" + appPod(nodeB) + "?dryRun=All"), false},
		{"the status of a pod of another node", onA, patch(podsOfApp+"/"+appPod(nodeB)+"/status?dryRun=All", label("a")), false},
		{"a pod that is no mirror pod", onA, post(podsOfApp+"?dryRun=All", podObject(appNamespace, "new", "app", nodeA)), false},
		{"as its node, the node", impersonating(nodeA), get("/api/v1/nodes/" + nodeA), true},
		{"as its node, a secret of a pod of the node", impersonating(nodeA), get(secretsOf + nodeA), true},
		{"as its node, a secret of a pod of another node", impersonating(nodeA), get(secretsOf + nodeB), false},
		{
			"as its node, what it may not impersonate it for", impersonating(nodeA),
			get("/api/v1/namespaces/" + appNamespace + "/configmaps/of-" + nodeA), false,
		},
		{"as another node", impersonating(nodeB), get("/api/v1/nodes/" + nodeB), false},
	}
	must(t, until(ctx, onA, get("/api/v1/nodes/"+nodeB), false))
	enforceScope(t, "as-node", v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: bypassNamespace, Name: "as-node"}}, Mode: v1alpha1.Enforce, AsNode: true,
	})
	must(t, until(ctx, onA, get("/api/v1/nodes/"+nodeB), true))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if a := send(t, test.client, test.request); a.refused() == test.passes || test.passes && a.status >= 300 {
				t.Errorf("%s: %s; passes: %t", test.request, a, test.passes)
			}
		})
	}
}
