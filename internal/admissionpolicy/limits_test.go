package admissionpolicy_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
)

// expensive is an expression that costs more than the API server lets one cost.
const expensive = `[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c,
	[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f < 100))))))`

// TestExpensivePoliciesAreGivenUp: a policy cannot make all evaluations together take long.
func TestExpensivePoliciesAreGivenUp(t *testing.T) {
	e, policy := admissionpolicy.New(), policyOf(t, validation(expensive), "")
	for range 100 {
		if got := e.Review(policy, podCreation()); got.Decision == undecided {
			if want := "costs too much to evaluate"; got.Why != want {
				t.Errorf("it is undecided because %q, want %q", got.Why, want)
			}
			return
		}
	}
	t.Error("it is evaluated without an end")
}

// TestAnswersAreReused: a policy is not evaluated again if only fields differ that it does not read.
func TestAnswersAreReused(t *testing.T) {
	e, policy := admissionpolicy.New(), policyOf(t, validation(expensive), "")
	for i := range 100 {
		r := podCreation()
		r.Shape, r.Namespace, r.Detail = "pod", string(rune('a'+i)), string(rune('a'+i))
		r.DetailIn = []attackpaths.Field{field("spec", "serviceAccountName")}
		if got := e.Review(policy, r); got.Decision != refused {
			t.Fatalf("request %d is %v, want Refused", i, got)
		}
	}
}

// TestWhatAPolicyReadsTellsRequestsApart: requests of one shape are evaluated for each value.
func TestWhatAPolicyReadsTellsRequestsApart(t *testing.T) {
	for _, c := range []struct{ rule, expression string }{
		{"the namespace of the request", "request.namespace == 'shop'"},
		{"the namespace of the object", "object.metadata.namespace == 'shop'"},
		{"the namespace", "namespaceObject.metadata.name == 'shop'"},
		{"a label of the namespace", "namespaceObject.metadata.labels.env == 'prod'"},
		{"the field of the detail", "object.spec.serviceAccountName == 'admin'"},
		{"what contains the field of the detail", "[object.spec].all(s, s.serviceAccountName == 'admin')"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			e, policy := admissionpolicy.New(), policyOf(t, validation(c.expression), "")
			request := func(namespace, account string, labels map[string]string) *attackpaths.Request {
				r := podCreation()
				r.Shape, r.Namespace, r.NamespaceLabels, r.Unknown, r.Filled = "pod", namespace, labels, nil, nil
				r.Detail, r.DetailIn = account, []attackpaths.Field{field("spec", "serviceAccountName")}
				objects := r.Objects
				r.Objects = func() (runtime.Object, runtime.Object) {
					o, _ := objects()
					o.(*corev1.Pod).Namespace, o.(*corev1.Pod).Spec.ServiceAccountName = namespace, account
					return o, nil
				}
				return r
			}
			yes := request("shop", "admin", map[string]string{"env": "prod"})
			no := request("other", "web", map[string]string{"env": "test"})
			for range 2 {
				if got := e.Review(policy, yes); got.Decision != passed {
					t.Errorf("%+v, want Passed", got)
				}
				if got := e.Review(policy, no); got.Decision != refused {
					t.Errorf("%+v, want Refused", got)
				}
			}
		})
	}
}

// FuzzReview: no text of a policy makes the evaluation panic.
func FuzzReview(f *testing.F) {
	for _, text := range []string{
		"object.spec.containers.all(c, c.name == 'x')", "variables.v", "[object][0].?metadata", "object",
		"oldObject == null", expensive[:40],
		"'a' in object.metadata.labels", "request.userInfo", "authorizer.requestResource",
		"has(object.a.b)", "object[1]", "type(object) == map",
	} {
		f.Add(text, text, "v")
	}
	f.Fuzz(func(t *testing.T, text, other, name string) {
		a := &inventory.Admission{
			Policy: &admissionv1.ValidatingAdmissionPolicySpec{
				Variables:        []admissionv1.Variable{{Name: name, Expression: other}},
				Validations:      []admissionv1.Validation{{Expression: text, MessageExpression: other}},
				MatchConditions:  []admissionv1.MatchCondition{{Name: name, Expression: other}},
				AuditAnnotations: []admissionv1.AuditAnnotation{{ValueExpression: other}},
				MatchConstraints: &admissionv1.MatchResources{},
			},
			Binding: &admissionv1.ValidatingAdmissionPolicyBindingSpec{},
		}
		e := admissionpolicy.New()
		e.Review(a, podCreation())
		e.Review(a, podUpdate())
	})
}
