package server

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// grants is an authorizer of rights in kube-system: "verb resource.group".
type grants []string

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := a.GetVerb() + " " + a.GetResource() + "." + a.GetAPIGroup()
	for _, right := range g {
		if right == "* *" || a.GetNamespace() == "kube-system" && right == asked {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// The test compiles the condition of the policy in deploy/bootstrap as an API server does, and
// evaluates it for users.
func TestThePolicyMatchesTheUsersOfTheService(t *testing.T) {
	text, err := os.ReadFile("../../deploy/bootstrap/policy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(text), "\n---\n")
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
		t.Fatal(err)
	}
	var conditions []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		condition := &policy.Spec.MatchConditions[i]
		conditions = append(conditions, &matchconditions.MatchCondition{
			Name: condition.Name, Expression: condition.Expression,
		})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	variables := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	evaluator := compiler.CompileCondition(conditions, variables, environment.StoredExpressions)
	fail := admissionregistrationv1.Fail
	matcher := matchconditions.NewMatcher(evaluator, &fail, "policy", "validate", policy.Name)
	const writeTokens = "write bootstraptokens.node-authorizer.io"
	for rule, test := range map[string]struct {
		user   string
		rights grants
		want   bool
	}{
		"the service account, without rights":     {"system:serviceaccount:kube-system:node-authorizer-bootstrap", nil, true},
		"a user with the roles":                   {"node-authorizer", grants{writeTokens}, true},
		"the service account of kops":             {"system:serviceaccount:kube-system:node-authorizer", grants{writeTokens}, true},
		"a service account of another namespace":  {"system:serviceaccount:shop:node-authorizer-bootstrap", nil, false},
		"another user":                            {"kube-controller-manager", grants{"create secrets."}, false},
		"an administrator":                        {"admin", grants{"* *"}, false},
		"a user with all rights for the resource": {"operator", grants{writeTokens, "* bootstraptokens.node-authorizer.io"}, false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: metav1.NamespaceSystem}}
		kind, resource := corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithResource("secrets")
		attributes := admission.NewAttributesRecord(secret, nil, kind, secret.Namespace, secret.Name, resource, "",
			admission.Create, nil, false, &user.DefaultInfo{Name: test.user})
		versioned := &admission.VersionedAttributes{
			Attributes: attributes, VersionedObject: admission.NewLazyObject(secret), VersionedKind: kind,
		}
		result := matcher.Match(t.Context(), versioned, nil, test.rights)
		if result.Error != nil || result.Matches != test.want {
			t.Errorf("%s: matches %v, want %v, error %v", rule, result.Matches, test.want, result.Error)
		}
	}
}
