package generate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
)

const header = "apiVersion: policy.node-authorizer.io/v1alpha1\nkind: NodeScope\n"

func read(t *testing.T, text string) ([]*v1alpha1.NodeScope, error) {
	return generate.Read(t.Context(), []string{"-"}, strings.NewReader(text))
}

func TestRead(t *testing.T) {
	scope := func(name, spec string) string {
		return header + "metadata: {name: " + name + "}\nspec: {" + spec + "}\n---\n"
	}
	scopes, err := read(t, scope("b",
		"mode: Observe, asNode: true")+"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\nvalues: []\n---\n"+scope("a",
		""))
	if err != nil || len(scopes) != 2 || scopes[0].Name != "a" || scopes[1].Name != "b" || !scopes[1].Spec.AsNode {
		t.Fatalf("%v, %v", scopes, err)
	}
	for rule, tc := range map[string]struct{ text, want string }{
		"a field that does not exist": {scope("a", "namedAsnode: []"), "namedAsnode"},
		"a name that occurs twice":    {scope("a", "") + scope("a", ""), "is in stdin:1 already"},
		"no name":                     {header + "spec: {mode: Observe}", "no metadata.name"},
		"another version":             {strings.Replace(scope("a", ""), "v1alpha1", "v9", 1), "want policy.node-authorizer.io/v1alpha1"},
		"no scopes":                   {"apiVersion: v1\nkind: Node\nmetadata: {name: n}", "no NodeScopes in file stdin: "},
	} {
		if _, err := read(t, tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", rule, err, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	answer, status := `{"apiVersion":"policy.node-authorizer.io/v1alpha1","kind":"NodeScopeList","metadata":{},"items":[
		{"metadata":{"name":"b"},"spec":{"subjects":[],"mode":"Enforce"}},
		{"metadata":{"name":"a"},"spec":{"subjects":[],"mode":"Observe"}}]}`, 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/policy.node-authorizer.io/v1alpha1/nodescopes" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	scopes, err := generate.List(t.Context(), config)
	if err != nil || len(scopes) != 2 || scopes[0].Name != "a" || scopes[1].Spec.Mode != v1alpha1.Enforce {
		t.Fatalf("%v, %v", scopes, err)
	}
	answer, status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, 404
	if _, err := generate.List(t.Context(), config); err == nil || !strings.Contains(err.Error(),
		"install the CustomResourceDefinition") {
		t.Errorf("a cluster without the resource: %v", err)
	}
}
