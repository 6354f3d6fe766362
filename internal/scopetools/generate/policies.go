package generate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Policy enforces one NodeScope in admission.
type Policy struct {
	// Scope is the name of the NodeScope, and Name the name of the policy and its binding.
	Scope string `json:"scope"`
	Name  string `json:"name"`
	// Action is what the binding does with writes that the policy refuses: Audit, Warn or Deny.
	Action registrationv1.ValidationAction `json:"action"`
	// CannotExpress are the parts of the scope that the policy does not enforce.
	CannotExpress []Limit `json:"cannotExpress"`

	policy  *registrationv1.ValidatingAdmissionPolicy
	binding *registrationv1.ValidatingAdmissionPolicyBinding
}

// Limit is a part of a scope that a policy does not enforce.
type Limit struct {
	// Rule is the rule of the scope: "asNode"; empty for the whole scope.
	Rule string `json:"rule,omitempty"`
	// Why says what is not enforced.
	Why string `json:"why"`
}

// Objects returns the policy and its binding. They must not be changed.
func (p *Policy) Objects() (*registrationv1.ValidatingAdmissionPolicy, *registrationv1.ValidatingAdmissionPolicyBinding) {
	return p.policy, p.binding
}

func general() []Limit {
	return []Limit{
		{Why: "reads (get, list and watch): admission does not see them"},
		{Why: "writes of admission policies and of webhook configurations: no admission policy sees them"},
		{Why: "writes to what other API servers serve (APIServices): kube-apiserver runs no admission for these"},
		{Why: "impersonation: admission sees only the user that is impersonated"},
	}
}

// Generate returns the policy of a valid NodeScope. Action is empty for the mode of the scope: Audit for
// Observe, and Deny for Enforce.
func Generate(scope *v1alpha1.NodeScope, action registrationv1.ValidationAction) *Policy {
	mode := registrationv1.Audit
	if scope.Spec.Mode == v1alpha1.Enforce {
		mode = registrationv1.Deny
	}
	p := &Policy{Scope: scope.Name, Name: policyName(scope.Name), Action: cmp.Or(action, mode), CannotExpress: general()}
	rules := express(&scope.Spec)
	for _, r := range rules {
		for _, why := range r.cannot {
			p.CannotExpress = append(p.CannotExpress, Limit{r.rule, why})
		}
	}
	meta := metav1.ObjectMeta{Name: p.Name, Labels: map[string]string{"app.kubernetes.io/name": "node-authorizer"}}
	fail := registrationv1.Fail
	p.policy = &registrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConstraints: everyWrite(), MatchConditions: matchConditions(&scope.Spec),
			Variables: variables(rules), Validations: validations(scope, rules),
		},
	}
	p.binding = &registrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.Name, ValidationActions: []registrationv1.ValidationAction{p.Action},
		},
	}
	return p
}

func policyName(scope string) string {
	const longest = 253
	name := "node-authorizer-scope-" + scope
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(scope))
	hash := hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:longest-len(hash)-1], ".-") + "-" + hash
}

func everyWrite() *registrationv1.MatchResources {
	every := []string{"*"}
	return &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{
		RuleWithOperations: registrationv1.RuleWithOperations{
			Operations: []registrationv1.OperationType{
				registrationv1.Create, registrationv1.Update, registrationv1.Delete, registrationv1.Connect,
			},
			Rule: registrationv1.Rule{APIGroups: every, APIVersions: every, Resources: []string{"*/*"}},
		},
	}}}
}

const username = "request.userInfo.username"

func matchConditions(spec *v1alpha1.NodeScopeSpec) []registrationv1.MatchCondition {
	var users, namespaces []string
	for _, s := range spec.Subjects {
		if s.Name == "" {
			namespaces = append(namespaces, s.Namespace)
		} else {
			users = append(users, nodeidentity.ServiceAccountUser(s.Namespace, s.Name))
		}
	}
	slices.Sort(users)
	slices.Sort(namespaces)
	accounts := celAccounts(username, slices.Compact(users), slices.Compact(namespaces))
	return []registrationv1.MatchCondition{{Name: "accounts", Expression: "has(" + username + ") && (" + accounts + ")"}}
}

// extra is the one value of an extra field of the user; empty if there is none, or several.
func extra(key string) string {
	k := celLiteral(key)
	return fmt.Sprintf("has(request.userInfo.extra) && %s in request.userInfo.extra && size(request.userInfo.extra[%s]) == 1 ? "+
		"request.userInfo.extra[%s][0] : ''", k, k, k)
}

func variables(rules []expressed) []registrationv1.Variable {
	list := []registrationv1.Variable{
		{Name: "node", Expression: extra(nodeidentity.ExtraNode)},
		{Name: "nodeUID", Expression: extra(nodeidentity.ExtraNodeUID)},
		{
			Name: "ambiguous",
			Expression: fmt.Sprintf("has(request.userInfo.extra) && %s in request.userInfo.extra && variables.node == ''",
				celLiteral(nodeidentity.ExtraNode)),
		},
		{Name: "group", Expression: "request.resource.group"},
		{Name: "subresource", Expression: "has(request.subResource) ? request.subResource : ''"},
		{
			Name:       "resource",
			Expression: "request.resource.resource + (variables.subresource == '' ? '' : '/' + variables.subresource)",
		},
		{Name: "objectNamespace", Expression: "has(request.namespace) ? request.namespace : ''"},
		{
			Name: "name",
			Expression: "has(request.name) && request.name != '' ? request.name : " +
				"(object == null ? '' : string(object.?metadata.?name.orValue('')))",
		},
	}
	for _, r := range rules {
		list = append(list,
			registrationv1.Variable{Name: "names_" + identifier(r.rule), Expression: r.named},
			registrationv1.Variable{Name: "passes_" + identifier(r.rule), Expression: all("variables.names_"+identifier(r.rule), r.passes)})
	}
	if len(rules) > 0 {
		list = append(list, registrationv1.Variable{Name: "naming", Expression: naming(rules)})
	}
	return list
}

func identifier(rule string) string { return strings.NewReplacer("[", "_", "]", "").Replace(rule) }

func validations(scope *v1alpha1.NodeScope, rules []expressed) []registrationv1.Validation {
	var passes, named []string
	for _, r := range rules {
		passes = append(passes, "variables.passes_"+identifier(r.rule))
		named = append(named, "variables.names_"+identifier(r.rule))
	}
	decides := one(passes...)
	if scope.Spec.Otherwise == v1alpha1.Allow {
		decides = one(decides, "!("+one(named...)+")")
	}
	bound := "!variables.ambiguous && variables.node != ''"
	if scope.Spec.TokensWithoutNode == v1alpha1.Allow {
		bound = "!variables.ambiguous"
	}
	about := "NodeScope " + scope.Name
	forbidden := metav1.StatusReasonForbidden
	return []registrationv1.Validation{
		{
			Expression: bound, Reason: &forbidden,
			Message: about + ": tokensWithoutNode: the token is bound to no node, or the user has several",
		},
		{
			Expression: "variables.node == '' || " + "(" + decides + ")", Reason: &forbidden,
			Message: about + ": no rule lets the token of a node make this write",
			MessageExpression: celLiteral(about+": ") + " + " + refusing(rules) + " + " +
				celLiteral(" a token of node ") + " + variables.node + ': ' + request.operation + ' ' + variables.resource + ' ' + " +
				"(variables.objectNamespace == '' ? '' : variables.objectNamespace + '/') + variables.name",
		},
	}
}

// refusing says which rules name a write and do not let it pass: "namedAsNode[0] refuses".
func refusing(rules []expressed) string {
	const none = "no rule names the request of"
	if len(rules) == 0 {
		return celLiteral(none)
	}
	return "(size(variables.naming) == 0 ? " + celLiteral(none) + " : variables.naming.join(', ') + ' refuses')"
}

func naming(rules []expressed) string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = "(variables.names_" + identifier(r.rule) + " ? [" + celLiteral(r.rule) + "] : [])"
	}
	return strings.Join(names, " + ")
}

// Policies are the policies of some NodeScopes.
type Policies struct {
	// Policies are the policies of the scopes, by name.
	Policies []*Policy `json:"policies"`
	// Manifest has all objects as YAML.
	Manifest string `json:"manifest"`
}

// DocumentKind is the kind of the policies as a document.
func (*Policies) DocumentKind() string { return "ScopeAdmissionPolicies" }

// Write writes the objects of policies as YAML, with what they do not enforce as comments.
func Write(all []*Policy) (*Policies, error) {
	var b strings.Builder
	for i, p := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		comment(&b, "Enforces NodeScope %s as far as admission can. It does not enforce:", p.Scope)
		for _, l := range p.CannotExpress {
			rule := ""
			if l.Rule != "" {
				rule = l.Rule + ": "
			}
			comment(&b, "- %s%s", rule, l.Why)
		}
		if err := object(&b, p.policy); err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		if err := object(&b, p.binding); err != nil {
			return nil, err
		}
	}
	return &Policies{Policies: all, Manifest: b.String()}, nil
}

func comment(b *strings.Builder, format string, args ...any) {
	b.WriteString("# " + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, fmt.Sprintf(format, args...)) + "\n")
}

// object writes an object without the fields that an API server fills in.
func object(b *strings.Builder, o any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	written, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	b.Write(written)
	return nil
}
