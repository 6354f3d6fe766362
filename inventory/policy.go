package inventory

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// policy is a ValidatingAdmissionPolicy, as far as it says what it is asked about.
type policy struct {
	match *admissionv1.MatchResources
	// bindings are the selections of the bindings that deny, by the name of the binding.
	bindings map[string]*admissionv1.MatchResources
}

// SetAdmissionPolicy adds a policy. It counts once a binding to it denies.
func (i *Inventory) SetAdmissionPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	i.policy(p.Name).match = p.Spec.MatchConstraints
	i.updatePolicy(p.Name)
}

// SetAdmissionPolicyBinding adds a binding. Those that only warn or audit refuse nothing.
func (i *Inventory) SetAdmissionPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	i.deletePolicyBinding(b.Name)
	if !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
		return
	}
	match := b.Spec.MatchResources
	if match == nil {
		match = &admissionv1.MatchResources{}
	}
	i.policy(b.Spec.PolicyName).bindings[b.Name] = match
	i.updatePolicy(b.Spec.PolicyName)
}

func (i *Inventory) policy(name string) *policy {
	if i.policies[name] == nil {
		i.policies[name] = &policy{bindings: map[string]*admissionv1.MatchResources{}}
	}
	return i.policies[name]
}

func (i *Inventory) deletePolicyBinding(name string) {
	for policyName, p := range i.policies {
		if _, ok := p.bindings[name]; ok {
			delete(p.bindings, name)
			i.updatePolicy(policyName)
		}
	}
}

// updatePolicy makes one Admission of a policy and each of its bindings.
func (i *Inventory) updatePolicy(name string) {
	for key, a := range i.admission {
		if a.Kind == "ValidatingAdmissionPolicy" && a.Name == name {
			delete(i.admission, key)
		}
	}
	p := i.policies[name]
	if p.match == nil {
		return
	}
	for binding, match := range p.bindings {
		a := Admission{Kind: "ValidatingAdmissionPolicy", Name: name, Webhook: binding, Rules: rulesOf(p.match.ResourceRules)}
		a.Excluded = append(excluding(p.match.ExcludeResourceRules), excluding(match.ExcludeResourceRules)...)
		if len(match.ResourceRules) > 0 {
			a.Narrowed = rulesOf(match.ResourceRules)
		}
		a.Namespaces = selector(p.match.NamespaceSelector)
		a.AlsoNamespaces = selector(match.NamespaceSelector)
		i.setAdmission(a)
	}
}

// rulesOf leaves the names out: a rule for some names may be about any.
func rulesOf(named []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	var rules []admissionv1.RuleWithOperations
	for _, r := range named {
		rules = append(rules, r.RuleWithOperations)
	}
	return rules
}

// excluding leaves out rules for some names: they do not exclude others.
func excluding(named []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	hasNames := func(r admissionv1.NamedRuleWithOperations) bool { return len(r.ResourceNames) > 0 }
	return rulesOf(slices.DeleteFunc(slices.Clone(named), hasNames))
}
