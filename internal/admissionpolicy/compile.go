package admissionpolicy

import (
	"context"
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// policy is a compiled policy.
type policy struct {
	*reader
	// broken is why it cannot be evaluated.
	broken        string
	failurePolicy registrationv1.FailurePolicyType
	conditions    matchconditions.Matcher
	validations   plugincel.ConditionEvaluator
	messages      plugincel.ConditionEvaluator
	annotations   plugincel.ConditionEvaluator
	// spent is the cost of all evaluations until now.
	spent int64
	// answers has one answer for all requests that the policy does not tell apart.
	answers map[string]attackpaths.PolicyAnswer
}

// expression is one of CEL, with the types that it may have.
type expression struct {
	name, text string
	types      []*cel.Type
}

func (e *expression) GetExpression() string    { return e.text }
func (e *expression) GetName() string          { return e.name }
func (e *expression) ReturnTypes() []*cel.Type { return e.types }

// analysisEnv is an environment that declares what the API server declares for policies. The
// types of a policy's variables are not known in it.
func analysisEnv(base *environment.EnvSet) (*cel.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(plugincel.ObjectVarName, cel.DynType),
			cel.Variable(plugincel.OldObjectVarName, cel.DynType),
			cel.Variable(plugincel.ParamsVarName, cel.DynType),
			cel.Variable(plugincel.VariableVarName, cel.DynType),
			cel.Variable(plugincel.RequestVarName, request.CelType()),
			cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
			cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType),
		},
		DeclTypes: []*apiservercel.DeclType{request, namespace},
	})
	if err != nil {
		return nil, err
	}
	return extended.StoredExpressionsEnv(), nil
}

// compiler makes the environment of a policy.
func (e *Evaluator) compiler() (*plugincel.CompositedCompiler, error) {
	if e.base == nil {
		e.base = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	}
	if e.analysis == nil {
		analysis, err := analysisEnv(e.base)
		if err != nil {
			return nil, err
		}
		e.analysis = analysis
	}
	return plugincel.NewCompositedCompiler(e.base)
}

// compile compiles a policy, once for all its bindings.
func (e *Evaluator) compile(name string, spec *registrationv1.ValidatingAdmissionPolicySpec) *policy {
	p := &policy{
		reader:        &reader{variables: map[string]string{}, read: map[string]bool{}},
		failurePolicy: registrationv1.Fail, answers: map[string]attackpaths.PolicyAnswer{},
	}
	if spec.FailurePolicy != nil {
		p.failurePolicy = *spec.FailurePolicy
	}
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		p.broken = "is not in the state as a whole" // the API server accepts no such policy
		return p
	}
	if spec.ParamKind != nil {
		p.broken = "has parameters"
		return p
	}
	compiler, err := e.compiler()
	if err != nil {
		p.broken = "cannot be compiled: " + err.Error()
		return p
	}
	p.env = e.analysis
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range spec.Variables {
		p.variables[v.Name] = v.Expression
		variable := &expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}
		if result := compiler.CompileAndStoreVariable(variable, declared, environment.StoredExpressions); result.Error != nil {
			p.broken = fmt.Sprintf("has a variable %s that does not compile", v.Name)
		}
	}
	p.compileExpressions(name, compiler, spec, declared)
	return p
}

// compileExpressions compiles what decides, and notes what it reads.
func (p *policy) compileExpressions(
	name string, compiler *plugincel.CompositedCompiler, spec *registrationv1.ValidatingAdmissionPolicySpec,
	declared plugincel.OptionalVariableDeclarations,
) {
	var conditions, validations, messages, annotations []plugincel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for _, v := range spec.Validations {
		validations = append(validations, &expression{text: v.Expression, types: []*cel.Type{cel.BoolType}})
		if v.MessageExpression != "" {
			messages = append(messages, &expression{text: v.MessageExpression, types: []*cel.Type{cel.StringType}})
		}
	}
	for _, a := range spec.AuditAnnotations {
		annotations = append(annotations, &expression{text: a.ValueExpression, types: []*cel.Type{cel.StringType, cel.NullType}})
	}
	decisive := func(list []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		compiled := compiler.CompileCondition(list, declared, environment.StoredExpressions)
		if p.broken == "" && len(compiled.CompilationErrors()) > 0 {
			p.broken = "does not compile"
		}
		for _, e := range list {
			p.expression(e.GetExpression())
		}
		return &metered{compiled, &p.spent}
	}
	if len(conditions) > 0 {
		p.conditions = matchconditions.NewMatcher(decisive(conditions), &p.failurePolicy, "policy", "validate", name)
	}
	p.validations, p.annotations = decisive(validations), decisive(annotations)
	// Messages decide nothing unless they cost too much.
	p.messages = &metered{
		compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions), &p.spent,
	}
}

// metered adds up what evaluations cost.
type metered struct {
	plugincel.ConditionEvaluator
	spent *int64
}

// ForInput implements plugincel.ConditionEvaluator.
func (m *metered) ForInput(
	ctx context.Context, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest,
	bindings plugincel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64,
) ([]plugincel.EvaluationResult, int64, error) {
	results, left, err := m.ConditionEvaluator.ForInput(ctx, attributes, request, bindings, namespace, budget)
	cost := budget - max(left, 0)
	*m.spent = min(*m.spent, math.MaxInt64-cost) + cost
	return results, left, err
}
