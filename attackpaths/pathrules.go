package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// addRightsOf adds the rules, and the bindings that the step does not name, that give what a vertex
// needs for a step.
func (p *pathChanges) addRightsOf(v, to vertex, how via) {
	k, target, binding := p.keys[v], p.keys[to], how.edge.arg
	scoped := p.isScopedAccount(k)
	switch {
	case k.kind == isRole:
		p.addRules(k.role, func(rule *rbacv1.PolicyRule) bool { return p.gives(rule, k.namespace != "", target, true) })
		return
	case k.kind == isLimited && target.kind == isRight && binding >= 0 && p.kinds[k.variant].of == right(target.variant):
		p.addRulesOf(binding, func(rule *rbacv1.PolicyRule, namespaced bool) bool {
			return p.gives(rule, namespaced, target, false)
		})
		return
	case scoped && how.join < 0 && binding >= 0 && (how.edge.row == 0 || target.kind == isClusterAdmin):
		p.addRulesOf(binding, func(rule *rbacv1.PolicyRule, namespaced bool) bool { return p.gives(rule, namespaced, target, false) })
		return
	case scoped && target.kind == isRole && k.kind != isServiceAccount:
		// The account holds the role that it binds to others.
		p.eachRole(p.subjectsOf(k, v), func(role key, binding int32) {
			if role.role == target.role {
				p.addBinding(binding)
			}
		})
	}
	if how.join < 0 && how.edge.row == 0 && target.kind != isRight {
		return
	}
	// Rights that count together are not vertices of their own.
	p.eachRole(p.subjectsOf(k, v), func(role key, binding int32) {
		combined := func(rule *rbacv1.PolicyRule) bool { return p.combined(rule, role.namespace != "") }
		if slices.ContainsFunc(p.roles[role.role].Rules, func(rule rbacv1.PolicyRule) bool { return combined(&rule) }) {
			p.addBinding(binding)
			p.addRules(role.role, combined)
		}
	})
}

// subjectsOf are the subjects of an identity.
func (p *pathChanges) subjectsOf(k key, v vertex) []vertex {
	switch {
	case k.kind != isServiceAccount && p.isScopedAccount(k):
		return p.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}].subjects
	case k.kind == isAssociated:
		return p.subjectsOfIdentity(k)
	case p.who[v] != nil:
		return p.who[v].subjects
	}
	return nil
}

// combined reports whether a rule grants rights that count together with others.
func (b *builder) combined(rule *rbacv1.PolicyRule, namespaced bool) bool {
	rules := []rbacv1.PolicyRule{*rule}
	return slices.ContainsFunc(b.rightsOf(rules, namespaced), func(g grant) bool { return g.right.countsTogether() })
}

// addRules adds rules of a role, unless it is one of those that Kubernetes restores.
func (p *pathChanges) addRules(role int32, keep func(*rbacv1.PolicyRule) bool) {
	r := &p.roles[role]
	if int(role) == len(p.roles)-1 || r.Role.Namespace == "" && r.Role.Name == clusterAdmin {
		return
	}
	for i := range r.Rules {
		if keep(&r.Rules[i]) {
			p.add(changeKey{kind: removeRule, object: objectOf(r.Role), rule: i})
		}
	}
}

// addRulesOf adds rules of the role that a binding gives.
func (p *pathChanges) addRulesOf(binding int32, keep func(rule *rbacv1.PolicyRule, namespaced bool) bool) {
	bound := p.bindings[binding]
	if role, ok := p.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]; ok {
		p.addRules(role, func(rule *rbacv1.PolicyRule) bool { return keep(rule, bound.Binding.Namespace != "") })
	}
}

// gives reports whether a rule of a role that is held may give what the role leads to, for any name if not exactly.
func (p *pathChanges) gives(rule *rbacv1.PolicyRule, namespaced bool, target key, exactly bool) bool {
	switch {
	case target.kind == isClusterAdmin:
		return grantsEverything(rule)
	case target.kind != isRight && target.kind != isOwnRight || namespaced && !p.kinds[target.variant].namespaced:
		return false
	}
	names := p.kinds[target.variant].namesBy(rule)
	return !exactly && len(names) > 0 || slices.Contains(names, target.name)
}
