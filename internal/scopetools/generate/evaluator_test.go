package generate_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// expression is one of CEL, with its type.
type expression struct {
	name, text string
	of         []*cel.Type
}

func (e *expression) GetExpression() string    { return e.text }
func (e *expression) GetName() string          { return e.name }
func (e *expression) ReturnTypes() []*cel.Type { return e.of }

// evaluator evaluates a policy with the API server's library.
type evaluator struct {
	conditions            matchconditions.Matcher
	validations, messages plugincel.ConditionEvaluator
}

func newEvaluator(t *testing.T, scope *v1alpha1.NodeScope) *evaluator {
	t.Helper()
	policies, err := generate.Write([]*generate.Policy{generate.Generate(scope, "")})
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(policies.Manifest, "---\n")
	var policy registrationv1.ValidatingAdmissionPolicy
	var binding registrationv1.ValidatingAdmissionPolicyBinding
	if err := yaml.UnmarshalStrict([]byte(documents[0]), &policy); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(documents[1]), &binding); err != nil || binding.Spec.PolicyName != policy.Name {
		t.Fatal(err, binding)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		// The compiler takes reserved words, and the API server refuses them.
		if escaped, ok := apiservercel.Escape(v.Name); !ok || escaped != v.Name {
			t.Fatalf("the variable %q is not an identifier of CEL", v.Name)
		}
		result := compiler.CompileAndStoreVariable(&expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, declared,
			environment.NewExpressions)
		if result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	compile := func(all ...plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		compiled := compiler.CompileCondition(all, declared, environment.NewExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		return compiled
	}
	var conditions, validations, messages []plugincel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &expression{text: v.Expression, of: []*cel.Type{cel.BoolType}})
		if v.MessageExpression != "" {
			messages = append(messages, &expression{text: v.MessageExpression, of: []*cel.Type{cel.StringType}})
		}
	}
	return &evaluator{
		matchconditions.NewMatcher(compile(conditions...), policy.Spec.FailurePolicy, "policy", "validate", policy.Name),
		compile(validations...), compile(messages...),
	}
}

// passes reports whether the API server admits a write. An error in an expression is an error of the test.
func (e *evaluator) passes(t *testing.T, w *noderestriction.Request) bool {
	t.Helper()
	passes, _ := e.decide(t, w)
	return passes
}

// decide also returns the message of a refusal.
func (e *evaluator) decide(t *testing.T, w *noderestriction.Request) (passes bool, message string) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: w.Group, Version: "v1", Resource: w.Resource}
	kind := schema.GroupVersionKind{Group: w.Group, Version: "v1", Kind: "Kind"}
	attributes := &admission.VersionedAttributes{VersionedKind: kind, Attributes: admission.NewAttributesRecord(
		w.Object, w.OldObject, kind, w.Namespace, w.Name, resource, w.Subresource, admission.Operation(w.Operation), nil, false,
		&user.DefaultInfo{Name: w.User, Groups: w.Groups, Extra: w.Extra},
	)}
	if w.Object != nil {
		attributes.VersionedObject.Set(w.Object)
	}
	if w.OldObject != nil {
		attributes.VersionedOldObject.Set(w.OldObject)
	}
	matched := e.conditions.Match(t.Context(), attributes, nil, nil)
	if matched.Error != nil {
		t.Fatal(matched.Error)
	}
	if !matched.Matches {
		return true, ""
	}
	request := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	passes = true
	for name, all := range map[string]plugincel.ConditionEvaluator{"validation": e.validations, "message": e.messages} {
		results, _, err := all.ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil,
			celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range results {
			if r.Error != nil {
				t.Fatalf("%s of %s: %v", name, describe(w), r.Error)
			}
			if name == "message" {
				message = r.EvalResult.Value().(string)
			} else {
				passes = passes && r.EvalResult.Value() == true
			}
		}
	}
	return passes, message
}
