package scopes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func forEachAgent(t *testing.T, test func(t *testing.T, a *agent)) {
	t.Helper()
	for _, a := range readAgents(t) {
		t.Run(a.name, func(t *testing.T) { test(t, a) })
	}
}

func TestScopesCanBeApplied(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		if a.scope.APIVersion != v1alpha1.GroupVersion().String() || a.scope.Kind != v1alpha1.NodeScopeKind {
			t.Errorf("it is a %s of %s", a.scope.Kind, a.scope.APIVersion)
		}
		if a.scope.Name != a.name {
			t.Errorf("its name is %q", a.scope.Name)
		}
		if errs := nodescope.Validate(a.scope); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
		if a.scope.Spec.Mode != v1alpha1.Observe {
			t.Errorf("its mode is %s: who applies it must see first what it would refuse", a.scope.Spec.Mode)
		}
		if !slices.Equal(a.scope.Spec.Subjects, []v1alpha1.Subject{a.day.Account}) {
			t.Errorf("its subjects are %v, the account of the requests is %v", a.scope.Spec.Subjects, a.day.Account)
		}
		for _, says := range []string{a.day.Agent, a.day.Release, "Open:", "Before Enforce:"} {
			if !strings.Contains(a.comment, says) {
				t.Errorf("its first comment does not say %q", says)
			}
		}
	})
}

func TestFactsNameTheAccount(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		if !hasAccount(readObjects(t, filepath.Join(folder, "rbac", a.name+".yaml")), a.day.Account) {
			t.Errorf("there is no service account %v", a.day.Account)
		}
		for _, w := range a.workloads {
			if w.Namespace == a.day.Account.Namespace && w.Spec.Template.Spec.ServiceAccountName == a.day.Account.Name {
				return
			}
		}
		t.Error("no DaemonSet runs with the account")
	})
}

func TestADayOfRequestsPasses(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		authorizer := a.authorizer(t, a.scope)
		for _, r := range a.day.Requests {
			if r.Count <= 0 || r.Source == "" {
				t.Errorf("%s: a request needs a count and a source", describe(&r))
			}
			req := a.request(t, &r, own)
			if decision := a.policy.Evaluate(req); !decision.Allowed {
				t.Errorf("%s: RBAC of the release does not allow it", describe(&r))
			}
			if answer := authorizer.Decide(req); answer.Refused() || answer.Decision != verdict.NoOpinion {
				t.Errorf("%s: refused with %s by %s", describe(&r), answer.Code, answer.Rule)
			}
			if r.Creates == "" {
				continue
			}
			if admission := authorizer.Admit(t.Context(), a.creation(&r, own)); admission.Refused() {
				t.Errorf("%s: admission refuses it with %s by %s", describe(&r), admission.Code, admission.Rule)
			}
		}
	})
}

// TestTheSameAboutAnotherNodeIsRefused puts each request that a rule about the node lets pass again, about
// objects on the other node. The README lists the requests that pass anywhere.
func TestTheSameAboutAnotherNodeIsRefused(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		limited := a.scope.DeepCopy()
		limited.Spec.Anywhere = nil
		authorizer, withoutOpen := a.authorizer(t, a.scope), a.authorizer(t, limited)
		for _, r := range a.day.Requests {
			mine := withoutOpen.Decide(a.request(t, &r, own))
			if mine.Refused() || mine.Rule == "asNode" && !aboutNode(r.Name+r.Field+r.Creates) {
				continue // open, or a right of every node
			}
			if r.Creates != "" {
				if admission := authorizer.Admit(t.Context(), a.creation(&r, foreign)); admission.Decision != verdict.Deny {
					t.Errorf("%s: another node's object may be created", describe(&r))
				}
				continue
			}
			if !aboutNode(r.Name + r.Field) {
				t.Errorf("%s: passes a rule about the node, but is not about it", describe(&r))
			}
			if answer := authorizer.Decide(a.request(t, &r, foreign)); answer.Decision != verdict.Deny {
				t.Errorf("%s: passes about another node by %s", describe(&r), answer.Rule)
			}
		}
	})
}

// TestTokensWithoutNodeAreRefused puts the requests with a token that is bound to no pod.
func TestTokensWithoutNodeAreRefused(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		authorizer := a.authorizer(t, a.scope)
		for _, r := range a.day.Requests {
			req := a.request(t, &r, own)
			req.Extra = nil
			if answer := authorizer.Decide(req); answer.Code != nodescope.ScopeTokenWithoutNode || answer.Decision != verdict.Deny {
				t.Errorf("%s: a token without a node gets %s", describe(&r), answer.Code)
			}
		}
	})
}

// TestObserveChangesNoAnswer: the scopes as they are in the folder refuse nothing.
func TestObserveChangesNoAnswer(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		compiled, errs := nodescope.Compile(a.scope)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		authorizer := authorizerOf(compiled, graph.New())
		req := &access.Request{User: a.user(), Extra: extra(own), ResourceRequest: true, Verb: "delete", Resource: "nodes", Name: foreign}
		if answer := authorizer.Decide(req); answer.Decision != verdict.NoOpinion || !answer.Refused() {
			t.Errorf("the answer is %s with %s; want no opinion, and what Enforce would refuse", answer.Decision, answer.Code)
		}
	})
}

func describe(r *dayRequest) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	words := []string{r.Verb, resource, r.Namespace, r.Name, r.Creates, r.Path, r.Field}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
}

// TestScopesFitTheSchema: the API server accepts them.
func TestScopesFitTheSchema(t *testing.T) {
	var definition apiextensions
	readInto(t, "../../../api/policy/v1alpha1/nodescopes.yaml", &definition)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("nodescope.json", definition.Spec.Versions[0].Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("nodescope.json")
	if err != nil {
		t.Fatal(err)
	}
	forEachAgent(t, func(t *testing.T, a *agent) {
		var object any
		readInto(t, filepath.Join(folder, a.name+".yaml"), &object)
		if err := schema.Validate(object); err != nil {
			t.Error(err)
		}
	})
}

// apiextensions has the schema of a CustomResourceDefinition.
type apiextensions struct {
	Spec struct {
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func readInto(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
