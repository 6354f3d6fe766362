package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// addRightsOf adds the rules, and the bindings that the step does not name, that give what a vertex
// needs for a step.
func (p *pathChanges) addRightsOf(v, to vertex, how via) {
	k, target := p.keys[v], p.keys[to]
	switch {
	case k.kind == isRole:
		p.addRules(k.role, func(rule *rbacv1.PolicyRule) bool { return p.gives(rule, k, target) })
		return
	case k.kind == isLimited && target.kind == isRight && how.edge.arg >= 0:
		bound := p.bindings[how.edge.arg]
		if role, ok := p.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]; ok {
			p.addRules(role, func(rule *rbacv1.PolicyRule) bool { return limits(rule, bound.Binding.Namespace != "", target) })
		}
		return
	}
	if p.isScopedAccount(k) && how.join < 0 && how.edge.arg >= 0 && (how.edge.row == 0 || target.kind == isClusterAdmin) {
		p.addScopedRules(how.edge.arg, target)
		return
	}
	if p.isScopedAccount(k) && target.kind == isRole && k.kind != isServiceAccount {
		p.addHeld(k, target.role)
	}
	// Rights that count together are not vertices of their own.
	if x := p.identityOf(v); x != nil && (how.join >= 0 || how.edge.row != 0 || target.kind == isRight) {
		for _, subject := range x.subjects {
			for _, e := range p.out[subject] {
				p.addCombined(p.keys[e.to], e.arg)
			}
		}
	}
}

func (p *pathChanges) identityOf(v vertex) *identity {
	if k := p.keys[v]; k.kind == isAssociated && p.isScopedAccount(k) {
		return &identity{vertex: v, subjects: p.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}].subjects}
	} else if k.kind == isAssociated {
		return &identity{vertex: v, subjects: p.subjectsOfIdentity(k)}
	}
	return p.who[v]
}

// addCombined adds a binding if its role has rights that count together with others, and these rules.
func (p *pathChanges) addCombined(role key, binding int32) {
	combined := func(rule *rbacv1.PolicyRule) bool { return p.combined(rule, role.namespace != "") }
	if slices.ContainsFunc(p.roles[role.role].Rules, func(rule rbacv1.PolicyRule) bool { return combined(&rule) }) {
		p.addBinding(binding)
		p.addRules(role.role, combined)
	}
}

// combined reports whether a rule grants rights that count together with others.
func (b *builder) combined(rule *rbacv1.PolicyRule, namespaced bool) bool {
	rights, _ := rightsOf([]rbacv1.PolicyRule{*rule}, namespaced, b.cluster.Features.Minor() < 35)
	if slices.ContainsFunc(rights, func(g granted) bool { return g.right >= firstOwn }) {
		return true
	}
	for m := range modeCount {
		if b.modes[m] && len(limitsOf([]rbacv1.PolicyRule{*rule}, namespaced, m)) > 0 {
			return true
		}
	}
	return false
}

// addRules adds rules of a role, unless it is one of those that Kubernetes restores.
func (p *pathChanges) addRules(role int32, keep func(*rbacv1.PolicyRule) bool) {
	r := p.roles[role].Role
	if int(role) == len(p.roles)-1 || r.Namespace == "" && r.Name == "cluster-admin" {
		return
	}
	for i := range p.objects.roles[role].Rules {
		if keep(&p.objects.roles[role].Rules[i]) {
			p.add(changeKey{kind: RemoveRule, object: objectOf(r), rule: i})
		}
	}
}

// addScopedRules adds the rules because of which a binding gives a right to an account in scopes.
func (p *pathChanges) addScopedRules(binding int32, target key) {
	bound := p.bindings[binding]
	role, ok := p.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]
	if !ok {
		return
	}
	p.addRules(role, func(rule *rbacv1.PolicyRule) bool {
		switch target.kind {
		case isClusterAdmin:
			return grantsEverything(rule)
		case isCustom:
			return len(p.requests[target.role].grantedBy(rule)) > 0
		}
		rights, _ := rightsOf([]rbacv1.PolicyRule{*rule}, bound.Binding.Namespace != "", p.cluster.Features.Minor() < 35)
		return slices.ContainsFunc(rights, func(g granted) bool { return g.right == right(target.variant) })
	})
}

// addHeld adds the bindings because of which an account in scopes holds a role that it binds to others.
func (p *pathChanges) addHeld(account key, role int32) {
	for _, subject := range p.scoped[inventory.Name{Namespace: account.namespace, Name: account.name}].subjects {
		for _, e := range p.out[subject] {
			if p.keys[e.to].role == role {
				p.addBinding(e.arg)
			}
		}
	}
}

// gives reports whether a rule of a role that is held may give what the role leads to.
func (p *pathChanges) gives(rule *rbacv1.PolicyRule, role, target key) bool {
	namespaced := role.namespace != ""
	switch {
	case target.kind == isClusterAdmin:
		return grantsEverything(rule)
	case target.kind == isCustom:
		return len(p.requests[target.role].grantedBy(rule)) > 0
	case target.kind == isOwnRight && target.mode != 0:
		return len(limitsOf([]rbacv1.PolicyRule{*rule}, namespaced, target.mode)) > 0
	case target.kind == isRight || target.kind == isOwnRight:
		rights, _ := rightsOf([]rbacv1.PolicyRule{*rule}, namespaced, p.cluster.Features.Minor() < 35)
		return slices.Contains(rights, granted{right: right(target.variant), name: target.name, any: target.name == ""})
	}
	return false
}

// limits reports whether a rule gives an identity that is impersonated a part of a right.
func limits(rule *rbacv1.PolicyRule, namespaced bool, target key) bool {
	return slices.ContainsFunc(limitsOf([]rbacv1.PolicyRule{*rule}, namespaced, 0), func(l limit) bool {
		return requests[l.request].right == right(target.variant)
	})
}
