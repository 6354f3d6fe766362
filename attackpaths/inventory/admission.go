package inventory

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Admission is one webhook or one admission policy that may refuse writes.
type Admission struct {
	// Kind is ValidatingWebhookConfiguration, MutatingWebhookConfiguration or
	// ValidatingAdmissionPolicy.
	Kind string
	// Name is the name of the configuration or policy, and Webhook the name of the webhook in it or of
	// the policy's binding.
	Name, Webhook string
	// Rules are the requests that it is asked about: one of each list has to match. It is not asked about Excluded.
	Rules    [][]admissionv1.RuleWithOperations
	Excluded []admissionv1.RuleWithOperations
	// Namespaces select the namespaces in which it counts: all of them have to.
	Namespaces []labels.Selector
	// Policy and Binding are what a ValidatingAdmissionPolicy and its binding say; nil for
	// webhooks. They must not be changed.
	Policy  *admissionv1.ValidatingAdmissionPolicySpec
	Binding *admissionv1.ValidatingAdmissionPolicyBindingSpec
}

// String names it for people.
func (a Admission) String() string {
	if a.Webhook != "" {
		return a.Kind + " " + a.Name + " (" + a.Webhook + ")"
	}
	return a.Kind + " " + a.Name
}

// Write is a request that admission is asked about.
type Write struct {
	Operation                    admissionv1.OperationType
	Group, Resource, Subresource string
	Namespaced                   bool
}

// Covers reports whether the request comes before the webhook or policy, in a namespace with
// these labels, or to the namespace itself. Nil stands for labels that are not known: then each namespace may be selected.
func (a *Admission) Covers(w Write, namespace map[string]string) bool {
	excludes := func(s labels.Selector) bool { return !s.Matches(labels.Set(namespace)) }
	inNamespace := w.Namespaced || w.Group == "" && w.Resource == "namespaces"
	if inNamespace && namespace != nil && slices.ContainsFunc(a.Namespaces, excludes) {
		return false
	}
	matches := func(r admissionv1.RuleWithOperations) bool { return covers(r, w) }
	for _, rules := range a.Rules {
		if !slices.ContainsFunc(rules, matches) {
			return false
		}
	}
	return !slices.ContainsFunc(a.Excluded, matches)
}

func covers(r admissionv1.RuleWithOperations, w Write) bool {
	operation := slices.Contains(r.Operations, w.Operation) || slices.Contains(r.Operations, admissionv1.OperationAll)
	group := slices.Contains(r.APIGroups, w.Group) || slices.Contains(r.APIGroups, "*")
	scope := r.Scope == nil || *r.Scope == admissionv1.AllScopes || (*r.Scope == admissionv1.NamespacedScope) == w.Namespaced
	return operation && group && scope && slices.ContainsFunc(r.Resources, func(pattern string) bool {
		if w.Subresource == "" {
			return pattern == w.Resource || pattern == "*" || pattern == "*/*"
		}
		return pattern == w.Resource+"/"+w.Subresource || pattern == w.Resource+"/*" || pattern == "*/"+w.Subresource || pattern == "*/*"
	})
}

// newWebhook is a webhook of a configuration.
func newWebhook(
	kind, configuration, name string, rules []admissionv1.RuleWithOperations, namespaces *metav1.LabelSelector,
) Admission {
	return Admission{
		Kind: kind, Name: configuration, Webhook: name,
		Rules: [][]admissionv1.RuleWithOperations{rules}, Namespaces: selectors(namespaces),
	}
}

// selectors parses selectors; one that is invalid selects all namespaces, so that nothing is taken for unguarded because of it.
func selectors(list ...*metav1.LabelSelector) []labels.Selector {
	var all []labels.Selector
	for _, s := range list {
		if parsed, err := metav1.LabelSelectorAsSelector(s); s != nil && err == nil {
			all = append(all, parsed)
		}
	}
	return all
}

// Admission lists the webhooks and policies by kind and name. A policy counts once for each binding to it that denies: those that
// only warn or audit refuse nothing.
func (i *Inventory) Admission() []Admission {
	all := slices.Concat(list[[]Admission](i, "ValidatingWebhookConfiguration")...)
	all = append(all, slices.Concat(list[[]Admission](i, "MutatingWebhookConfiguration")...)...)
	for name, r := range i.records["ValidatingAdmissionPolicyBinding"] {
		binding := r.(*admissionv1.ValidatingAdmissionPolicyBindingSpec)
		policy, ok := record[*admissionv1.ValidatingAdmissionPolicySpec](i, "ValidatingAdmissionPolicy", Name{"", binding.PolicyName})
		if ok && policy.MatchConstraints != nil && slices.Contains(binding.ValidationActions, admissionv1.Deny) {
			all = append(all, newPolicy(name.Name, policy, binding))
		}
	}
	slices.SortFunc(all, func(a, b Admission) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Webhook, b.Webhook))
	})
	return all
}

// newPolicy is a policy with one of its bindings. Rules that exclude some names, or other versions than v1, do not exclude others.
func newPolicy(
	name string, policy *admissionv1.ValidatingAdmissionPolicySpec, binding *admissionv1.ValidatingAdmissionPolicyBindingSpec,
) Admission {
	match, narrower := policy.MatchConstraints, value(binding.MatchResources)
	excluded := slices.Concat(match.ExcludeResourceRules, narrower.ExcludeResourceRules)
	a := Admission{
		Kind: "ValidatingAdmissionPolicy", Name: binding.PolicyName, Webhook: name, Policy: policy, Binding: binding,
		Rules: [][]admissionv1.RuleWithOperations{rulesOf(match.ResourceRules)},
		Excluded: rulesOf(slices.DeleteFunc(excluded, func(r admissionv1.NamedRuleWithOperations) bool {
			return len(r.ResourceNames) > 0 || !slices.Contains(r.APIVersions, "v1") && !slices.Contains(r.APIVersions, "*")
		})),
		Namespaces: selectors(match.NamespaceSelector, narrower.NamespaceSelector),
	}
	if len(narrower.ResourceRules) > 0 {
		a.Rules = append(a.Rules, rulesOf(narrower.ResourceRules))
	}
	return a
}

// rulesOf leaves the names out: a rule for some names may be about any.
func rulesOf(named []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	var rules []admissionv1.RuleWithOperations
	for _, r := range named {
		rules = append(rules, r.RuleWithOperations)
	}
	return rules
}
