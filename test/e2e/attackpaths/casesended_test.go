package attackpaths

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// outlived is a pod that its kubelet has ended.
func outlived(pod string) string {
	return replaced(pod, "spec:\n", "spec:\n  activeDeadlineSeconds: 1\n")
}

// succeeded is a pod that has ended on a node without a kubelet.
func succeeded(pod string) string {
	return replaced(pod, "spec:\n", "status: {phase: Succeeded}\nspec:\n")
}

// terminating is a namespace that is deleted and stays.
func terminating(name string) string {
	return replaced(namespace(name, ""), "metadata:", "status: {phase: Terminating}\nmetadata:")
}

var everyWayIn = []string{"create pods/exec@", "create pods/attach@", "patch pods/ephemeralcontainers@", "patch pods@"}

var endedCases = []testCase{
	{rule: "PodExec: nothing in a pod that has ended", add: outlived(podDB) + roleOf("r", "shop", "shop/web", everyWayIn...)},
	{
		rule: "PodExec: nothing in a pod that has succeeded",
		add: nodeOf("n1") + succeeded(podOf("shop", "db-1", "n1", "db")) + podOf("shop", "db-2", "n1", "default") +
			roleOf("r", "shop", "shop/web", everyWayIn...),
		want: []string{"Pod shop/db-2", "ServiceAccount shop/default"},
	},
	{
		rule: "NodeProxy: nothing in a pod that has ended",
		add:  outlived(podDB) + roleOf("r", "", "shop/web", "create,get nodes/proxy@"),
	},
	{
		rule: "TokenOfPodOnNode: the account of a pod that has ended", start: nodeWeb1, add: outlived(podDB),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "TokenOfPodOnNode: the account of a pod that has succeeded", start: holding{Kind: attackpaths.Node, Name: "n1"},
		add:  nodeOf("n1") + succeeded(podOf("shop", "db-1", "n1", "db")),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "PodCreate: not in a namespace that terminates",
		add: terminating("ending") + account("ending", "a") + roleOf("r", "ending", "shop/web",
			"create pods@", "create replicationcontrollers@", "create deployments@apps", "create jobs@batch"),
	},
	{
		rule: "PodUpdate: not a template in a namespace that terminates",
		add: terminating("ending") + account("ending", "a") + workloadOf("apps/v1", "Deployment", "ending", "web", 1) +
			roleOf("r", "ending", "shop/web", "patch deployments@apps"),
	},
	{
		rule: "TokenRequest: not in a namespace that terminates",
		add:  terminating("ending") + account("ending", "a") + roleOf("r", "ending", "shop/web", "create serviceaccounts/token@"),
	},
	{
		rule: "TokenRequest: not in a namespace that terminates, by a right in the whole cluster",
		add: terminating("ending") + account("ending", "a") + roleOf("r", "", "shop/web", "create serviceaccounts/token@ a") +
			roleOf("s", "ending", "ending/b", "get configmaps@") + roleOf("t", "ending", "shop/web", "create serviceaccounts@"),
	},
	{
		rule:  "TokenOfPodOnNode: not in a namespace that terminates",
		start: holding{Kind: attackpaths.User, Name: "system:node:web-1"},
		add:   terminating("ending") + account("ending", "a") + podOf("ending", "p", web1, "a"),
	},
	{
		rule: "PodTokenOnNode: what a pod of a namespace that terminates has mounted", start: nodeWeb1,
		add:  terminating("ending") + account("ending", "a") + podOf("ending", "p", web1, "a"),
		want: []string{"Pod ending/p", "ServiceAccount ending/a"},
	},
	{
		rule: "ServiceAccountTokenSecret: not a new one in a namespace that terminates",
		add:  terminating("ending") + account("ending", "a") + roleOf("r", "ending", "shop/web", "create,get secrets@"),
	},
	{
		rule: "BindRole: not a new binding in a namespace that terminates",
		add: terminating("ending") + opaque("ending", "key") + clusterRole("reader", "get secrets@") +
			roleOf("r", "ending", "shop/web", "create rolebindings"+inRBAC, "bind clusterroles"+inRBAC+" reader"),
	},
	{
		rule: "BindRole: a binding that exists in a namespace that terminates",
		add: terminating("ending") + opaque("ending", "key") + roleOf("reader", "ending", "user nobody", "get secrets@") +
			roleOf("r", "ending", "shop/web", "patch rolebindings"+inRBAC, "bind roles"+inRBAC),
		want: []string{"Secret ending/key"},
	},
	{
		rule: "EscalateRole: not a new role in a namespace that terminates",
		add: terminating("ending") + binding("Role", "gone", "ending", "b", "shop/web") +
			roleOf("r", "ending", "shop/web", "escalate,create roles"+inRBAC),
	},
	{
		rule: "PodExec: pods of a namespace that terminates run, with their tokens",
		add: terminating("ending") + account("ending", "a") + podOf("ending", "p", web1, "a") +
			roleOf("r", "ending", "shop/web", "create pods/exec@"),
		want: []string{"Pod ending/p", "ServiceAccount ending/a"},
	},
}

// postTo returns the answer of a kubelet.
func postTo(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A kubelet starts processes in pods that run, and none in those that have ended.
func TestNothingStartsInAPodThatHasEnded(t *testing.T) {
	ctx, w := t.Context(), newest
	w.begin(t, podDB+outlived(podOf("shop", "db-2", web1, "db")))
	e := &executor{world: w}
	if err := e.runs(ctx, "shop", "db-1", web1); err != nil {
		t.Fatal(err)
	}
	var node corev1.Node
	if err := w.admin.get(ctx, nodes.at("", web1)).into(&node); err != nil {
		t.Fatal(err)
	}
	kubelet := fmt.Sprintf("http://127.0.0.1:%d", node.Status.DaemonEndpoints.KubeletEndpoint.Port) // a hollow one asks nobody
	const missing = "container not found"
	for pod, isMissing := range map[string]bool{"db-1": false, "db-2": true} {
		for _, path := range []string{"/run/shop/" + pod + "/c?cmd=id", "/exec/shop/" + pod + "/c?command=id&output=1"} {
			if body := postTo(t, kubelet+path); strings.Contains(body, missing) != isMissing {
				t.Errorf("%s: %s", path, body)
			}
		}
	}
}
