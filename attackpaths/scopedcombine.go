package attackpaths

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// associatedRights are the rights to impersonate the node of a token. The checks have no node, so that
// scopes let all of them pass or none.
func (a *scopedAccount) associatedRights() (map[grant]bool, []modeRight) {
	x := &identity{rights: map[grant]bool{}, conditions: map[grant]string{}}
	for i := range a.others {
		p := &a.others[i]
		if p.on == associatedNode || p.on == 0 && p.right == impersonateAssociatedNode {
			x.note(p, p.limit, "")
		}
	}
	x.sortOn()
	return x.rights, x.on
}

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

// deniesAll reports whether scopes refuse everything to all accounts that a right lets be impersonated.
func (c *combiner) deniesAll(u held) bool {
	name := cmp.Or(u.name, "any-other") // which scopes about a whole namespace name too
	return u.namespace != "" && c.denied(userOfAccount(u.namespace, name))
}

// passOn gives what an account in scopes holds by RBAC to others: the API server lets a requester bind
// and write rules that it holds, and compares with RBAC alone.
func (c *combiner) passOn() {
	if c.who.scoped == nil {
		return
	}
	held := c.who.scoped.held
	for _, w := range c.have(createClusterRoleBindings, createRoleBindings) {
		for _, h := range held {
			for _, ns := range slices.DeleteFunc(slices.Clone(c.scopesOf(w, h)), func(ns string) bool { return !c.isFree(w, ns) }) {
				c.passOnBy(BindRole, h.role, ns, c.newBindingGuards(w.right, ns, h.role), w)
			}
		}
	}
	for _, w := range c.have(updateClusterRoleBindings, updateRoleBindings) {
		for _, bound := range c.bindings {
			ns := bound.Binding.Namespace
			role, ok := c.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]
			if ok && (ns == "") == (w.right == updateClusterRoleBindings) && w.covers(ns, bound.Binding.Name) && c.holdsRules(role, ns) {
				c.passOnBy(BindRole, role, ns, c.changedBindingGuards(w.right, bound), w)
			}
		}
	}
	for _, w := range c.have(updateClusterRoles, updateRoles) {
		c.passOnRules(w)
	}
}

// scopesOf are the namespaces in which an account can bind a role that it holds; the empty one is all.
func (c *combiner) scopesOf(w held, h heldRole) []string {
	if w.right == createClusterRoleBindings {
		if h.namespace == "" {
			return []string{""}
		}
		return nil
	}
	return c.scopes(w.namespace, h.namespace)
}

// passOnRules adds what an account holds to a role that some identity holds.
func (c *combiner) passOnRules(w held) {
	everything := int32(len(c.roles) - 1)
	for _, v := range c.roleVertices {
		k := c.keys[v]
		role := c.roles[k.role].Role
		if k.variant == heldInScopes && k.name == c.who.scoped.user() {
			continue // it has these rules
		}
		if k.role == everything || (role.Kind == "ClusterRole") != (w.right == updateClusterRoles) || !w.covers(role.Namespace, role.Name) {
			continue
		}
		for _, h := range c.who.scoped.held {
			if h.namespace == "" || h.namespace == role.Namespace {
				c.passOnBy(EscalateRole, h.role, k.namespace, c.changedRoleGuards(w.right, k.role), w, v)
			}
		}
	}
}

func (c *combiner) passOnBy(code Code, role int32, namespace, guards string, w held, others ...vertex) {
	from := append([]vertex{c.who.vertex, w.through}, others...)
	c.add(code, c.ownRole(role, namespace), guards, []held{w}, from)
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
