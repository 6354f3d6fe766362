package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// In a cluster that is read in parts, the objects that an account's NodeScope depends on are read before it answers.
func TestNodeScopesOfACluster(t *testing.T) {
	server := fakeapiserver.New(fakeapiserver.Options{Resources: allResources(), Version: func() string { return "v1.37.0" }})
	t.Cleanup(server.Close)
	pod := func(name, node string) string {
		return `{"metadata":{"namespace":"shop","name":"` + name + `"},"spec":{"nodeName":"` + node + `","serviceAccountName":"agent",
			"volumes":[{"name":"v","secret":{"secretName":"of-` + name + `"}}]}}`
	}
	const rbac, policy = "/apis/rbac.authorization.k8s.io/v1/", "/apis/policy.node-authorizer.io/v1alpha1/"
	for path, object := range map[string]string{
		"/api/v1/nodes/a": `{"metadata":{"name":"a"}}`, "/api/v1/nodes/b": `{"metadata":{"name":"b"}}`,
		"/api/v1/namespaces/shop/pods/here": pod("here", "a"), "/api/v1/namespaces/shop/pods/there": pod("there", "b"),
		rbac + "clusterroles/all": `{"metadata":{"name":"all"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		rbac + "clusterrolebindings/all": `{"metadata":{"name":"all"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"all"},
			"subjects":[{"kind":"ServiceAccount","namespace":"shop","name":"agent"}]}`,
		policy + "nodescopes/agent": `{"metadata":{"name":"agent"},"spec":{"mode":"Enforce","asNode":true,
			"subjects":[{"namespace":"shop","name":"agent"}],"podsOnNode":[{"resources":["pods"],"verbs":["delete"]}]}}`,
		policy + "quarantines/b": `{"metadata":{"name":"b"},"spec":{"node":"b"}}`,
	} {
		if err := server.Put(path, json.RawMessage(object)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for question, want := range map[string]string{
		"delete pods/here -n shop --pod shop/here":      "yes: allowed by rule 0",
		"delete pods/there -n shop --pod shop/here":     "no: NodeScope agent refuses",
		"get secrets/of-here -n shop --pod shop/here":   "yes: allowed by rule 0",
		"get secrets/of-there -n shop --pod shop/here":  "no: NodeScope agent refuses",
		"list deployments.apps -n shop --pod shop/here": "no: NodeScope agent refuses",
		"delete pods/there -n shop --pod shop/there":    "no: the node is quarantined by Quarantine b",
		"get nodes/b --node b":                          "no: the node is quarantined by Quarantine b",
	} {
		var out, errOut bytes.Buffer
		args := append([]string{binaryName, "can-i", "--server", server.URL()}, strings.Fields(question)...)
		Main(args, strings.NewReader(""), &out, &errOut)
		if !strings.HasPrefix(out.String(), want) || errOut.Len() > 0 {
			t.Errorf("%s: %s%s", question, &out, &errOut)
		}
	}
}
