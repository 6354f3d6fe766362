package nodescope_test

import (
	"encoding/json"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// FuzzCompile: no NodeScope ever allows, and a valid one can be explained and listed.
func FuzzCompile(f *testing.F) {
	seed, err := json.Marshal(scope(rules))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed), "patch", "ciliumnodes", "b")
	f.Add(`{"spec":{"mode":"Enforce","subjects":[{"namespace":"kube-system"}],"otherwise":"Allow"}}`, "get", "pods", "on-a")
	f.Add(`{"spec":{"mode":"Enforce","subjects":[{"namespace":""}],"asNode":true}}`, "create", "nodes", "")
	f.Add(`{"spec":{"mode":"Enforce","subjects":[{"namespace":"kube-system"}],"podsOnNode":[{"apiGroups":["","x"],`+
		`"resources":["pods/*","things"],"verbs":["*"]}]}}`, "create", "things", "")
	for odd := range oddjson.Seeds(string(seed), oddjson.Places(v1alpha1.NodeScope{})) {
		f.Add(string(odd), "get", "pods", "on-b")
	}
	f.Fuzz(func(t *testing.T, document, verb, resource, name string) {
		var object v1alpha1.NodeScope
		if json.Unmarshal([]byte(document), &object) != nil {
			return
		}
		s, errs := nodescope.Compile(&object)
		if (s == nil) != (len(errs) > 0) {
			t.Fatalf("compiled as %v with %v", s, errs)
		}
		if s == nil {
			if s = nodescope.Broken(&object); s == nil {
				return
			}
		}
		c := newCluster(t)
		policy, _ := nodescope.NewPolicy([]*nodescope.Scope{s})
		c.policy.Store(policy)
		req := ask("get pods shop/on-a")
		req.Verb, req.Resource, req.Name = verb, resource, name
		explained := c.Explain(req)
		if explained.Decision == verdict.Allow || explained.Reason.Message == "" {
			t.Errorf("got %+v", explained)
		}
		for _, w := range []string{"UPDATE pods shop/on-b", "CREATE things.x shop/on-b"} {
			if admitted := c.Admit(t.Context(), write(w)); admitted.Decision == verdict.Allow {
				t.Errorf("%s: %+v", w, admitted)
			}
		}
		policy.Passing(req.User, "a")
	})
}
