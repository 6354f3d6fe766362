package containment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/containmentserver"
)

// The nodes. Tokens of nodeA act, for nodeA or for nodeB.
const (
	nodeA = "node-a"
	nodeB = "node-b"
)

// appNamespace has the pods of users, one on each node.
const appNamespace = "shop"

// object is an object as JSON.
type object = map[string]any

func meta(namespace, name string) object {
	m := object{"name": name}
	if namespace != "" {
		m["namespace"] = namespace
	}
	return m
}

// populate makes the nodes, and on each a pod with secrets and a config map.
func (w *world) populate(ctx context.Context) error {
	for _, name := range []string{nodeA, nodeB} {
		if err := w.makeNode(ctx, name); err != nil {
			return err
		}
	}
	if err := w.namespace(ctx, appNamespace); err != nil {
		return err
	}
	if err := w.account(ctx, appNamespace, "app"); err != nil {
		return err
	}
	for _, name := range []string{nodeA, nodeB} {
		for _, kind := range []string{"secrets", "configmaps"} {
			path := "/api/v1/namespaces/" + appNamespace + "/" + kind
			if err := w.create(ctx, path, object{"metadata": meta(appNamespace, "of-"+name)}); err != nil {
				return err
			}
		}
		pod := podObject(appNamespace, appPod(name), "app", name)
		pod["spec"].(object)["volumes"] = []any{
			object{"name": "s", "secret": object{"secretName": "of-" + name}},
			object{"name": "c", "configMap": object{"name": "of-" + name}},
		}
		if err := w.create(ctx, podsPath(appNamespace), pod); err != nil {
			return err
		}
	}
	return nil
}

// appPod is the name of the pod of users on a node.
func appPod(node string) string { return "web-" + node }

func podsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

// create makes an object if there is none.
func (w *world) create(ctx context.Context, path string, o object) error {
	a, err := w.admin.do(ctx, post(path, o))
	if err == nil && a.status >= 300 && a.status != http.StatusConflict {
		err = fmt.Errorf("create %v in %s: %s", o["metadata"], path, a)
	}
	return err
}

func (w *world) namespace(ctx context.Context, name string) error {
	return w.create(ctx, "/api/v1/namespaces", object{"metadata": meta("", name)})
}

func accountPath(namespace string) string {
	return "/api/v1/namespaces/" + namespace + "/serviceaccounts"
}

func (w *world) account(ctx context.Context, namespace, name string) error {
	return w.create(ctx, accountPath(namespace), object{"metadata": meta(namespace, name)})
}

// makeNode makes a node on which pods can be scheduled.
func (w *world) makeNode(ctx context.Context, name string) error {
	resources := object{"cpu": "8", "memory": "16Gi", "pods": "200"}
	node := object{
		"metadata": object{"name": name, "labels": object{"kubernetes.io/hostname": name}},
		"status": object{
			"capacity": resources, "allocatable": resources,
			"conditions": []any{object{"type": "Ready", "status": "True", "reason": "Test"}},
		},
	}
	if err := w.create(ctx, "/api/v1/nodes", node); err != nil {
		return err
	}
	// Admission taints new nodes.
	return w.admin.must(ctx, patch("/api/v1/nodes/"+name, object{"spec": object{"taints": nil}}), nil)
}

// podObject returns a pod. Without a node, it is to be scheduled.
func podObject(namespace, name, account, node string) object {
	spec := object{
		"serviceAccountName": account, "terminationGracePeriodSeconds": 0,
		"containers": []any{object{"name": "c", "image": "registry.example.com/agent:1"}},
	}
	if node != "" {
		spec["nodeName"] = node
		// No test may end the pod by a taint.
		spec["tolerations"] = []any{object{"operator": "Exists"}}
	}
	return object{"metadata": meta(namespace, name), "spec": spec}
}

// agentPod is the name of an account's pod on a node.
func agentPod(account, node string) string { return account + "-" + node }

// placeAgent makes an account and its pods, one on each node, as a DaemonSet does.
func (w *world) placeAgent(ctx context.Context, namespace, account string) error {
	key := namespace + "/" + account
	if w.accounts[key] {
		return nil
	}
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	if err := w.account(ctx, namespace, account); err != nil {
		return err
	}
	for _, node := range []string{nodeA, nodeB} {
		if err := w.create(ctx, podsPath(namespace), podObject(namespace, agentPod(account, node), account, node)); err != nil {
			return err
		}
	}
	w.accounts[key] = true
	return nil
}

// tokenOf returns a token of an account that is bound to its pod on a node.
func (w *world) tokenOf(ctx context.Context, namespace, account, node string) (string, error) {
	return w.tokenOfPod(ctx, namespace, account, agentPod(account, node))
}

func (w *world) tokenOfPod(ctx context.Context, namespace, account, pod string) (string, error) {
	var bound struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := w.admin.must(ctx, get(podsPath(namespace)+"/"+pod), &bound); err != nil {
		return "", err
	}
	return w.requestToken(ctx, namespace, account, object{"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": bound.Metadata.UID})
}

// requestToken returns a token that is bound to an object; nil for none.
func (w *world) requestToken(ctx context.Context, namespace, account string, bound object) (string, error) {
	spec := object{"expirationSeconds": 3600}
	if bound != nil {
		spec["boundObjectRef"] = bound
	}
	var token struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	err := w.admin.must(ctx, post(accountPath(namespace)+"/"+account+"/token", object{"spec": spec}), &token)
	return token.Status.Token, err
}

// agentClient returns a client with the token of an account's pod on a node.
func (w *world) agentClient(ctx context.Context, namespace, account, node string) (*client, error) {
	if err := w.placeAgent(ctx, namespace, account); err != nil {
		return nil, err
	}
	token, err := w.tokenOf(ctx, namespace, account, node)
	if err != nil {
		return nil, err
	}
	return w.token(token)
}

// grant gives an account rights in the whole cluster.
func (w *world) grant(ctx context.Context, namespace, account string, rules ...object) error {
	name := "test:" + namespace + ":" + account
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	if err := w.create(ctx, rbac+"clusterroles", object{"metadata": meta("", name), "rules": rules}); err != nil {
		return err
	}
	return w.create(ctx, rbac+"clusterrolebindings", object{
		"metadata": meta("", name),
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []any{object{"kind": "ServiceAccount", "namespace": namespace, "name": account}},
	})
}

// rule is a rule of RBAC or of a NodeScope.
func rule(group, resources, verbs string) object {
	return object{"apiGroups": []any{group}, "resources": words(resources), "verbs": words(verbs)}
}

func words(text string) []any {
	var list []any
	for _, word := range strings.Fields(text) {
		list = append(list, word)
	}
	return list
}

const (
	scopesPath      = containmentserver.NodeScopes
	quarantinesPath = containmentserver.Quarantines
)

// put applies an object of the servers and waits until they have accepted this generation of it.
func (w *world) put(ctx context.Context, path, kind, name string, spec any) error {
	if err := w.applyPolicy(ctx, path, kind, name, spec); err != nil {
		return err
	}
	return w.awaitAccepted(ctx, path+"/"+name)
}

func (w *world) applyPolicy(ctx context.Context, path, kind, name string, spec any) error {
	body := object{
		"apiVersion": "policy.node-authorizer.io/v1alpha1", "kind": kind, "metadata": meta("", name), "spec": spec,
	}
	apply := request{
		method: http.MethodPatch, path: path + "/" + name + "?fieldManager=test&force=true", contentType: applyPatch, body: body,
	}
	return w.admin.must(ctx, apply, nil)
}

func (w *world) awaitAccepted(ctx context.Context, path string) error {
	return containmentserver.AwaitAccepted(ctx, w.object, path)
}

// condition returns the condition of the current generation of an object; empty if there is none.
func (w *world) condition(ctx context.Context, path string) (containmentserver.Condition, error) {
	return containmentserver.ConditionOf(ctx, w.object, path)
}

// object gets an object.
func (w *world) object(ctx context.Context, path string, into any) error {
	return w.admin.must(ctx, get(path), into)
}

// drop deletes an object.
func (w *world) drop(ctx context.Context, path string) error {
	a, err := w.admin.do(ctx, remove(path))
	if err == nil && a.status >= 300 && a.status != http.StatusNotFound {
		err = errors.New(a.String())
	}
	return err
}

// until waits until the answer to a request is refused, or is not.
func until(ctx context.Context, c *client, r request, refused bool) error {
	return await.Until(ctx, fmt.Sprintf("%s is refused: %t", r, refused), func(ctx context.Context) error {
		a, err := c.do(ctx, r)
		if err == nil && a.refused() != refused {
			err = errors.New(a.String())
		}
		return err
	})
}
