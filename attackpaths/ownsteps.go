package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// ownRole is the vertex of a role that the attacker can bind to each identity that it holds.
func (c *combiner) ownRole(role int32, namespace string) vertex {
	return c.vertex(key{kind: isRole, variant: own, namespace: namespace, role: role})
}

// bind: bind on a role, and a right to write a binding.
func (c *combiner) bind() {
	binds := c.have(bindClusterRoles, bindRoles)
	if len(binds) == 0 {
		return
	}
	writes := c.have(createClusterRoleBindings, updateClusterRoleBindings, createRoleBindings, updateRoleBindings)
	for _, w := range writes {
		for _, b := range binds {
			c.bindWith(w, b)
		}
	}
}

func (c *combiner) bindWith(w, b held) {
	switch w.right {
	case createClusterRoleBindings:
		if b.right == bindClusterRoles && b.namespace == "" && c.isFree(w, "") {
			c.bindRolesOf(w, b, "")
		}
	case createRoleBindings:
		for _, ns := range c.scopes(w.namespace, b.namespace) {
			if c.isFree(w, ns) {
				c.bindRolesOf(w, b, ns)
			}
		}
	case updateClusterRoleBindings, updateRoleBindings:
		for _, bound := range c.bindings {
			ns := bound.Binding.Namespace
			if (ns == "") != (w.right == updateClusterRoleBindings) || !w.covers(ns, bound.Binding.Name) {
				continue
			}
			role, ok := c.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]
			if ok && bindsRole(b, ns, bound.Role.Kind, bound.Role.Name) {
				c.pair(BindRole, c.ownRole(role, ns), c.changedBindingGuards(w.right, bound), w, b)
			}
		}
	}
}

// scopes are the namespaces in which two rights to create something count.
func (c *combiner) scopes(a, b string) []string {
	switch {
	case a == "" && b == "":
		return slices.DeleteFunc(slices.Clone(c.namespaces), func(ns string) bool { return c.terminating[ns] })
	case c.terminating[a] || c.terminating[b]:
		return nil
	case a == "" || a == b:
		return []string{b}
	case b == "":
		return []string{a}
	}
	return nil
}

// bindsRole reports whether a right to bind is one for a role in a scope.
func bindsRole(b held, namespace, kind, name string) bool {
	if kind == "ClusterRole" {
		return b.right == bindClusterRoles && b.covers(namespace, name) && (namespace != "" || b.namespace == "")
	}
	return b.right == bindRoles && namespace != "" && b.covers(namespace, name)
}

// bindRolesOf gives the roles that a right to bind is about. Those that grant everything
// stand for all.
func (c *combiner) bindRolesOf(w, b held, namespace string) {
	if b.name == "" && b.right == bindClusterRoles {
		for _, role := range c.everythingRoles() {
			c.pair(BindRole, c.ownRole(role, namespace), c.newBindingGuards(w.right, namespace, role), w, b)
		}
		return
	}
	for i, r := range c.roles[:len(c.roles)-1] {
		if r.Role.Namespace != "" && r.Role.Namespace != namespace {
			continue
		}
		if bindsRole(b, namespace, r.Role.Kind, r.Role.Name) {
			c.pair(BindRole, c.ownRole(int32(i), namespace), c.newBindingGuards(w.right, namespace, int32(i)), w, b)
		}
	}
}

// impersonate: groups can be impersonated together with a user or service account only.
func (c *combiner) impersonate() {
	c.impersonateOnNodes()
	for _, g := range c.have(impersonateGroups) {
		for _, u := range c.have(impersonateUsers) {
			// The API server takes the name of a service account for that account, which needs another right.
			if _, _, isAccount := accountOfUser(u.name); !isAccount {
				c.impersonateWith(u, g)
			}
		}
		for _, u := range c.have(impersonateServiceAccounts) {
			if !c.deniesAll(u) {
				c.impersonateGroup(u, g)
			}
		}
	}
}

func (c *combiner) impersonateWith(u, g held) {
	c.impersonateGroup(u, g)
	if g.name != "" && g.name != nodeidentity.Group {
		return
	}
	if u.name == "" {
		c.pair(Impersonate, c.impersonatedFact(everyNodeUser, ""), "", u, g)
		return
	}
	if node, ok := strings.CutPrefix(u.name, nodeUserPrefix); ok && c.has(key{kind: isNode, name: node}) {
		c.pair(Impersonate, c.asImpersonated(key{kind: isNodeUser, name: u.name}), "", u, g)
	}
}

func (c *combiner) impersonateGroup(u, g held) {
	c.impersonateTogether(u, g)
	if g.name != "" {
		c.pair(Impersonate, c.asImpersonated(key{kind: isGroup, name: g.name}), "", u, g)
		return
	}
	c.pair(Impersonate, c.impersonatedFact(everyGroup, ""), "", u, g)
	c.pair(Impersonate, c.asImpersonated(key{kind: isGroup, name: masters}), "", u, g)
}
