package inventory

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// policy is a ValidatingAdmissionPolicy with its bindings.
type policy struct {
	// spec is nil while the policy is not there.
	spec *admissionv1.ValidatingAdmissionPolicySpec
	// bindings are those that deny, by name.
	bindings map[string]*admissionv1.ValidatingAdmissionPolicyBindingSpec
}

// SetAdmissionPolicy adds a policy. It counts once a binding to it denies.
func (i *Inventory) SetAdmissionPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	i.policy(p.Name).spec = &p.Spec
	i.updatePolicy(p.Name)
}

// SetAdmissionPolicyBinding adds a binding. Those that only warn or audit refuse nothing.
func (i *Inventory) SetAdmissionPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	i.deletePolicyBinding(b.Name)
	if !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
		return
	}
	i.policy(b.Spec.PolicyName).bindings[b.Name] = &b.Spec
	i.updatePolicy(b.Spec.PolicyName)
}

func (i *Inventory) policy(name string) *policy {
	if i.policies[name] == nil {
		i.policies[name] = &policy{bindings: map[string]*admissionv1.ValidatingAdmissionPolicyBindingSpec{}}
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
	if p.spec == nil || p.spec.MatchConstraints == nil {
		return
	}
	match := p.spec.MatchConstraints
	for binding, spec := range p.bindings {
		narrower := spec.MatchResources
		if narrower == nil {
			narrower = &admissionv1.MatchResources{}
		}
		i.setAdmission(Admission{
			Kind: "ValidatingAdmissionPolicy", Name: name, Webhook: binding, Policy: p.spec, Binding: spec,
			Rules: rulesOf(match.ResourceRules), Narrowed: rulesOf(narrower.ResourceRules),
			Excluded:   append(excluding(match.ExcludeResourceRules), excluding(narrower.ExcludeResourceRules)...),
			Namespaces: selector(match.NamespaceSelector), AlsoNamespaces: selector(narrower.NamespaceSelector),
		})
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

// excluding leaves out rules for some names or for other versions than v1: they do not exclude
// others.
func excluding(named []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	limited := func(r admissionv1.NamedRuleWithOperations) bool {
		return len(r.ResourceNames) > 0 || !slices.Contains(r.APIVersions, "v1") && !slices.Contains(r.APIVersions, "*")
	}
	return rulesOf(slices.DeleteFunc(slices.Clone(named), limited))
}
