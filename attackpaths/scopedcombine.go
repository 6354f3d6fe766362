package attackpaths

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// requestsScopedToken gives an account in scopes with a token to who may request it: bound to any node,
// or before 1.31 to a pod. Who may also create pods chooses a name that no node needs to have.
// Source: KEP-4193.
func (b *builder) requestsScopedToken(v vertex, namespace, name, guards string) {
	a := b.scopeOf(namespace, name)
	if b.cluster.Features.Minor() >= 31 {
		b.step(TokenRequest, v, b.tokenVertex(namespace, name, b.fact(everyNodeUser, ""), 0), -1, guards)
	} else {
		for _, i := range b.podsIn[namespace] {
			if p := b.pods[i]; p.ServiceAccount == name && p.Node != "" {
				b.step(TokenRequest, v, b.tokenVertex(namespace, name, b.nodeUserVertex(p.Node), 0), -1, guards)
			}
		}
	}
	if b.partsOf(a); len(a.perNode) > 0 || b.cluster.Features.Minor() < 31 {
		pods := b.vertex(key{kind: isNamespace, name: namespace})
		b.together(TokenRequest, b.tokenVertex(namespace, name, b.fact(nodeNamed, ""), 0), guards, v, pods)
	}
}

// impersonateOnNodes gives accounts in scopes with the name of a node to who may impersonate both.
func (c *combiner) impersonateOnNodes() {
	if c.enforced == 0 {
		return
	}
	for _, n := range c.have(impersonateNodeNames) {
		node := c.fact(nodeNamed, n.name)
		if n.name != "" && c.has(key{kind: isNode, name: n.name}) {
			node = c.nodeUserVertex(n.name)
		}
		for _, u := range c.have(impersonateServiceAccounts) {
			for _, ns := range slices.Sorted(maps.Keys(c.accountNames)) {
				for _, name := range c.accountNames[ns] {
					if c.scopeOf(ns, name) != nil && u.covers(ns, name) {
						c.pair(Impersonate, c.tokenVertex(ns, name, node, impersonated), "", u, n)
					}
				}
			}
		}
	}
}

// passOnRules adds what an account in scopes holds by RBAC to roles that some identity holds, see bind.
func (c *combiner) passOnRules() {
	if c.who.scoped == nil {
		return
	}
	for _, w := range c.have(updateClusterRoles, updateRoles) {
		c.heldRoles(w.right == updateClusterRoles, func(v vertex, k key, role *rbac.RoleRules) {
			if k.variant == heldInScopes && k.name == c.who.scoped.user() || !w.covers(role.Role.Namespace, role.Role.Name) {
				return // it has these rules, or may not change them
			}
			for _, h := range c.who.scoped.held {
				if h.namespace == "" || h.namespace == role.Role.Namespace {
					c.passOn(EscalateRole, c.ownRole(h.role, k.namespace), c.changedRoleGuards(w.right, k.role), w, v)
				}
			}
		})
	}
}

// passOn adds a step with one right of an account in scopes, and perhaps a role that is held.
func (c *combiner) passOn(code Code, to vertex, guards string, w held, role vertex) {
	c.add(code, to, guards, []held{w}, []vertex{c.who.vertex, w.through, role})
}

// holdsRules reports whether RBAC grants to the account every rule of a role in a scope.
func (c *combiner) holdsRules(role int32, namespace string) bool {
	var have []rbacv1.PolicyRule
	for _, h := range c.who.scoped.held {
		if h.namespace == "" || h.namespace == namespace {
			have = append(have, c.roles[h.role].Rules...)
		}
	}
	covered, _ := validation.Covers(have, c.roles[role].Rules)
	return covered
}
