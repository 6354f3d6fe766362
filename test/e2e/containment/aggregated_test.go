package containment

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The group of the tests has a version that an extension API server serves, and one that kube-apiserver does.
const (
	extensionGroup = "extension.example.com"
	aggregatedPath = "/apis/" + extensionGroup + "/v1/widgets"
	localPath      = "/apis/" + extensionGroup + "/v2/widgets"
)

// extension is an extension API server. It answers every request, and ignores selectors.
func extension(w http.ResponseWriter, r *http.Request) {
	widget := object{"apiVersion": extensionGroup + "/v1", "kind": "Widget", "metadata": object{"name": nodeA}}
	other := object{"apiVersion": extensionGroup + "/v1", "kind": "Widget", "metadata": object{"name": nodeB}}
	status, body := http.StatusOK, widget
	switch {
	case r.URL.Path == "/apis/"+extensionGroup+"/v1":
		body = object{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": extensionGroup + "/v1",
			"resources": []any{object{
				"name": "widgets", "singularName": "widget", "kind": "Widget",
				"verbs": words("get list watch create update delete deletecollection"),
			}},
		}
	case r.Method == http.MethodPost:
		status = http.StatusCreated
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			status = http.StatusBadRequest
		}
	case strings.HasSuffix(r.URL.Path, "/widgets"):
		body = object{"apiVersion": extensionGroup + "/v1", "kind": "WidgetList", "items": []any{widget, other}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// startExtension serves the group of the tests until the test ends: v1 by an extension API server, v2 by a
// CustomResourceDefinition.
func startExtension(t *testing.T) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(extension))
	t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	port, err := strconv.Atoi(text)
	must(t, err)
	must(t, plane.namespace(t.Context(), "extension"))
	must(t, plane.create(t.Context(), "/api/v1/namespaces/extension/services", object{
		"metadata": meta("extension", "server"), "spec": object{"type": "ExternalName", "externalName": "localhost"},
	}))
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	must(t, plane.create(t.Context(), services, object{
		"metadata": meta("", "v1."+extensionGroup), "spec": object{
			"group": extensionGroup, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
			"service": object{"namespace": "extension", "name": "server", "port": port},
		},
	}))
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	must(t, plane.create(t.Context(), definitions, object{
		"metadata": meta("", "widgets."+extensionGroup), "spec": object{
			"group": extensionGroup, "scope": "Cluster", "names": object{"plural": "widgets", "singular": "widget", "kind": "Widget"},
			"versions": []any{object{
				"name": "v2", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}))
	t.Cleanup(func() {
		must(t, plane.drop(context.Background(), services+"/v1."+extensionGroup))
		must(t, plane.drop(context.Background(), definitions+"/widgets."+extensionGroup))
	})
	for _, path := range []string{aggregatedPath, localPath} {
		must(t, await.Until(t.Context(), path+" is served", func(ctx context.Context) error {
			return plane.admin.must(ctx, get(path), nil)
		}))
	}
}

// kube-apiserver runs no admission for requests that it passes on to an extension API server, and this one may ignore
// selectors. So a scope lets a request pass there only by its path. Another version of the same group is
// served by kube-apiserver, and loses nothing.
func TestExtensionAPIServersAreHeldByThePathAlone(t *testing.T) {
	startExtension(t)
	agent := agentOf(t, bypassNamespace, "extended", nodeA)
	must(t, plane.grant(t.Context(), bypassNamespace, "extended", rule("*", "*", "*")))
	must(t, until(t.Context(), agent, get(aggregatedPath+"/"+nodeB), false))
	enforceScope(t, "extended", v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: bypassNamespace, Name: "extended"}}, Mode: v1alpha1.Enforce,
		NamedAsNode: []v1alpha1.NamedRule{{APIGroups: []string{extensionGroup}, Resources: []string{"widgets"}, Verbs: []string{"*"}}},
		SelectsNode: []v1alpha1.SelectedRule{{
			APIGroups: []string{extensionGroup}, Resources: []string{"widgets"}, Verbs: []string{"list", "watch", "deletecollection"},
			Field: "spec.nodeName",
		}},
	})
	must(t, until(t.Context(), agent, get(aggregatedPath+"/"+nodeB), true))
	of := func(version, name string) object {
		return object{"apiVersion": extensionGroup + "/" + version, "kind": "Widget", "metadata": object{"name": name}}
	}
	const byName, byNode = "?fieldSelector=metadata.name%3D" + nodeA, "?fieldSelector=spec.nodeName%3D" + nodeA
	for _, tc := range []struct {
		name string
		request
		status int
		code   verdict.Code
	}{
		{"a create with another node's name", post(aggregatedPath, of("v1", nodeB)), 403, nodescope.ScopeAggregatedAPI},
		{"a create with the node's name", post(aggregatedPath, of("v1", nodeA)), 403, nodescope.ScopeAggregatedAPI},
		{"a list that selects the node", get(aggregatedPath + byNode), 403, nodescope.ScopeAggregatedAPI},
		{"a list that selects the node's name", get(aggregatedPath + byName), 403, nodescope.ScopeAggregatedAPI},
		{"a deletion of what is selected", remove(aggregatedPath + byNode), 403, nodescope.ScopeAggregatedAPI},
		{"the object of another node", get(aggregatedPath + "/" + nodeB), 403, nodescope.ScopeNameNotNode},
		{"the object of the node", get(aggregatedPath + "/" + nodeA), 200, ""},
		{"an update of the object of the node", put(aggregatedPath+"/"+nodeA, of("v1", nodeA)), 200, ""},
		{"a local create with another node's name", post(localPath, of("v2", nodeB)), 403, nodescope.ScopeNameNotNode},
		{"a local create with the node's name", post(localPath, of("v2", nodeA)), 201, ""},
		{"a local list that selects the node's name", get(localPath + byName), 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := send(t, agent, tc.request)
			if a.status != tc.status || tc.code != "" && codeOf(a) != tc.code {
				t.Errorf("%s: %s; want %d %s", tc.request, a, tc.status, tc.code)
			}
		})
	}
}
