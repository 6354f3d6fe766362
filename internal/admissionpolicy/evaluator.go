package admissionpolicy

import (
	"context"
	"errors"
	"strings"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Limits of the cost of all evaluations of one policy, and of all policies, in the API server's
// units. It lets one evaluation cost celconfig.RuntimeCELCostBudget, which is about a second.
const (
	policyLimit = 2 * celconfig.RuntimeCELCostBudget
	totalLimit  = 10 * celconfig.RuntimeCELCostBudget
)

// tooExpensive is why a policy is not evaluated any more.
const tooExpensive = "costs too much to evaluate"

// Evaluator evaluates policies. It is not safe for concurrent use.
type Evaluator struct {
	// base and analysis are made when the first policy is compiled.
	base     *environment.EnvSet
	analysis *cel.Env
	policies map[*registrationv1.ValidatingAdmissionPolicySpec]*policy
	spent    int64
}

// New returns an evaluator.
func New() *Evaluator {
	return &Evaluator{policies: map[*registrationv1.ValidatingAdmissionPolicySpec]*policy{}}
}

var _ attackpaths.PolicyEvaluator = (*Evaluator)(nil)

var (
	passed  = attackpaths.PolicyAnswer{Decision: attackpaths.Passed}
	refused = attackpaths.PolicyAnswer{Decision: attackpaths.Refused}
)

func undecided(why string) attackpaths.PolicyAnswer { return attackpaths.PolicyAnswer{Why: why} }

// Review implements attackpaths.PolicyEvaluator.
func (e *Evaluator) Review(a *inventory.Admission, r *attackpaths.Request) attackpaths.PolicyAnswer {
	if a.Policy == nil || a.Binding == nil {
		return undecided("")
	}
	namespace := namespaceOf(r)
	attributes := attributesOf(r, selectsObjects(a) || namespace == nil)
	failurePolicy := registrationv1.Fail
	if a.Policy.FailurePolicy != nil {
		failurePolicy = *a.Policy.FailurePolicy
	}
	for _, resources := range [...]*registrationv1.MatchResources{a.Policy.MatchConstraints, a.Binding.MatchResources} {
		matched, open, err := matches(resources, r, attributes)
		switch {
		case err != nil:
			return onError(failurePolicy)
		case open != "":
			return undecided(open)
		case !matched:
			return passed
		}
	}
	if r.Kind.Kind == "" {
		return undecided("")
	}
	if a.Binding.ParamRef != nil {
		return undecided("has parameters")
	}
	p, ok := e.policies[a.Policy]
	if !ok {
		p = e.compile(a.Name, a.Policy)
		e.policies[a.Policy] = p
	}
	if why := p.unknown(r); why != "" {
		return undecided(why)
	}
	key := p.key(r)
	if answer, ok := p.answers[key]; ok {
		return answer
	}
	answer := e.evaluate(p, attributesOf(r, true), namespace, r)
	if r.Shape != "" {
		p.answers[key] = answer
	}
	return answer
}

// onError is the answer of the API server when a policy cannot be evaluated.
func onError(f registrationv1.FailurePolicyType) attackpaths.PolicyAnswer {
	if f == registrationv1.Ignore {
		return passed
	}
	return refused
}

// selectsObjects reports whether a policy or its binding selects objects by their labels.
func selectsObjects(a *inventory.Admission) bool {
	for _, m := range [...]*registrationv1.MatchResources{a.Policy.MatchConstraints, a.Binding.MatchResources} {
		if m != nil && !isEmpty(m.ObjectSelector) {
			return true
		}
	}
	return false
}

// attributesOf is a request as the API server's library takes it, with its objects or without.
// The user is nobody: nothing that reads it is evaluated.
func attributesOf(r *attackpaths.Request, objects bool) *admission.VersionedAttributes {
	var object, old runtime.Object
	if objects {
		object, old = r.Objects()
	}
	record := admission.NewAttributesRecord(object, old, r.Kind, r.Namespace, r.Name, r.Resource, r.Subresource,
		admission.Operation(r.Operation), nil, false, &user.DefaultInfo{})
	attributes := &admission.VersionedAttributes{Attributes: record, VersionedKind: r.Kind}
	if object != nil {
		attributes.VersionedObject.Set(object)
	}
	if old != nil {
		attributes.VersionedOldObject.Set(old)
	}
	return attributes
}

// namespaceOf is the namespace of a request; nil for objects without one, and for namespaces.
func namespaceOf(r *attackpaths.Request) *corev1.Namespace {
	if r.Namespace == "" || r.Kind.Group == "" && r.Kind.Kind == "Namespace" {
		return nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Labels: r.NamespaceLabels}}
}

// unknown names what a policy reads of a request and is not known.
func (p *policy) unknown(r *attackpaths.Request) string {
	if p.broken != "" {
		return p.broken
	}
	if p.open != "" {
		return "reads " + p.open
	}
	for _, u := range p.uses {
		known := true
		switch {
		case u.root == plugincel.RequestVarName:
			known = !r.AnyName
		case u.root == plugincel.NamespaceVarName:
			known = u.field[1] != "labels" || r.Namespace == "" || r.NamespaceLabels != nil
		case u.root == plugincel.ObjectVarName && u.presence:
			known = r.KnowsPresence(u.field)
		case u.root == plugincel.ObjectVarName:
			known = r.Knows(u.field)
		case u.presence:
			known = r.KnowsOldPresence(u.field)
		default:
			known = r.KnowsOld(u.field)
		}
		if !known {
			return "reads " + strings.Join(append([]string{u.root}, u.field...), ".")
		}
	}
	return ""
}

// key is the same for requests that the policy does not tell apart.
func (p *policy) key(r *attackpaths.Request) string {
	key, namespace, detail := r.Shape, p.namespace, false
	for _, u := range p.uses {
		if u.root != plugincel.ObjectVarName && u.root != plugincel.OldObjectVarName {
			continue
		}
		ofNamespace := attackpaths.Field{"metadata", "namespace"}
		namespace = namespace || u.field.Within(ofNamespace) || ofNamespace.Within(u.field)
		for _, f := range r.DetailIn {
			detail = detail || u.field.Within(f) || f.Within(u.field)
		}
	}
	if namespace {
		key += "\x00namespace " + r.Namespace
	}
	if detail {
		key += "\x00detail " + r.Detail
	}
	return key
}

// evaluate evaluates a policy that is asked about a request.
func (e *Evaluator) evaluate(
	p *policy, a *admission.VersionedAttributes, namespace *corev1.Namespace, r *attackpaths.Request,
) attackpaths.PolicyAnswer {
	if p.spent > policyLimit || e.spent > totalLimit {
		return undecided(tooExpensive)
	}
	before := p.spent
	defer func() { e.spent += p.spent - before }()

	ctx := context.Background()
	if p.conditions != nil {
		result := p.conditions.Match(ctx, a, nil, nil)
		if result.Error != nil {
			return onError(p.failurePolicy)
		}
		if !result.Matches {
			return passed
		}
	}
	request := plugincel.CreateAdmissionRequest(a.Attributes, metav1.GroupVersionResource(r.Resource), metav1.GroupVersionKind(r.Kind))
	ask := func(evaluator plugincel.ConditionEvaluator, budget int64) ([]plugincel.EvaluationResult, int64, error) {
		return evaluator.ForInput(ctx, a, request, plugincel.OptionalVariableBindings{}, plugincel.CreateNamespaceObject(namespace), budget)
	}
	results, left, err := ask(p.validations, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return onError(p.failurePolicy)
	}
	if answer := p.judge(results); answer != passed {
		return answer
	}
	if _, _, err := ask(p.messages, left); len(results) > 0 &&
		(errors.Is(err, apiservercel.ErrInternal) || errors.Is(err, apiservercel.ErrOutOfBudget)) && onError(p.failurePolicy) != passed {
		return refused
	}
	return p.judgeAnnotations(ask(p.annotations, celconfig.RuntimeCELCostBudget))
}

// judge says what the results of validations are together.
func (p *policy) judge(results []plugincel.EvaluationResult) attackpaths.PolicyAnswer {
	for _, result := range results {
		switch {
		case result.Error != nil:
			if answer := onError(p.failurePolicy); answer != passed {
				return answer
			}
		case result.EvalResult != celtypes.True:
			return refused
		}
	}
	return passed
}

// judgeAnnotations: an annotation that cannot be computed refuses the request.
func (p *policy) judgeAnnotations(results []plugincel.EvaluationResult, _ int64, err error) attackpaths.PolicyAnswer {
	if err != nil {
		return onError(p.failurePolicy)
	}
	for _, result := range results {
		if result.Error != nil {
			if answer := onError(p.failurePolicy); answer != passed {
				return answer
			}
			continue
		}
		if t := result.EvalResult.Type(); t != celtypes.StringType && t != celtypes.NullType {
			return refused
		}
	}
	return passed
}
