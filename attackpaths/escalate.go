package attackpaths

import (
	"cmp"
	"strings"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// dependsOnRole is what else decides about a role of which the objects do not show whether it exists.
const dependsOnRole = "whether the role exists: Kubernetes makes roles of such names"

// discovery is a default role that all users hold, unless an administrator changed that.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
const (
	discovery          = "system:discovery"
	dependsOnDiscovery = "whether all users hold " + discovery + ", as they do by default"
)

// escalate: escalate on a role, and a right to write it, where the role is held. It is enough to write a
// role that an aggregated cluster role selects which is held: whoever writes a role chooses its labels.
func (c *combiner) escalate() {
	for _, kinds := range [...]struct{ escalate, create, update right }{
		{escalateClusterRoles, createClusterRoles, updateClusterRoles},
		{escalateRoles, createRoles, updateRoles},
	} {
		for _, e := range c.have(kinds.escalate) {
			for _, w := range c.have(kinds.update) {
				c.escalateBy(e, w, false)
			}
			for _, w := range c.have(kinds.create) {
				// A new object has a name when its rights are checked if the request has one.
				if e.name == "" || len(w.parts) > 0 && (w.name == "" || e.name == w.name) {
					w.name = cmp.Or(w.name, e.name)
					c.escalateBy(e, w, true)
				}
			}
		}
	}
}

// escalateBy changes the rules of a role that is held, deletes it and creates it again, or creates one that a binding names and that
// does not exist. Each may be another role that becomes a part of the one that is held.
func (c *combiner) escalateBy(e, w held, creates bool) {
	clusterRoles := e.right == escalateClusterRoles
	gone, free := c.madeFree(w.right, "", w.name)
	part := clusterRoles && (creates && free || !creates && c.changesSome(e, w))
	c.heldRoles(clusterRoles, func(v vertex, k key, role *rbac.RoleRules) {
		ns, name := role.Role.Namespace, role.Role.Name
		itself, exists := e.covers(ns, name) && w.covers(ns, name) && !(creates && c.terminating[ns]), c.roleExists(k.role)
		step := func(guards string, gone vertex) {
			c.pair(EscalateRole, c.ownRole(int32(len(c.roles)-1), k.namespace), guards, e, w, v, gone)
		}
		switch {
		case itself && !creates && exists:
			step(c.changedRoleGuards(w.right, k.role), none)
			return
		case itself && creates && exists && c.keeps(sameRole(k.role), e, w):
			step(c.guardsOf(w.right, ns), c.deleted(deleteOf[w.right], ns, name))
		case itself && creates && !exists && strings.HasPrefix(name, "system:"):
			step(allOf(dependsOnRole, c.guardsOf(w.right, ns)), none)
			return
		case itself && creates && !exists:
			step(c.guardsOf(w.right, ns), none)
			return
		}
		if part && role.Aggregates && (gone == none || c.keeps(sameRole(c.roleIndex[roleName{"", w.name}]), e, w)) {
			step(c.guardsOf(w.right, ""), gone)
		}
	})
	_, known := c.roleIndex[roleName{"", discovery}]
	if creates && clusterRoles && !known && e.covers("", discovery) && w.covers("", discovery) {
		c.pair(EscalateRole, c.ownRole(int32(len(c.roles)-1), ""), allOf(dependsOnDiscovery, c.guardsOf(w.right, "")), e, w,
			c.deleted(deleteOf[w.right], "", discovery))
	}
}

// sameRole is the loss of a role.
func sameRole(of int32) func(role, binding int32) bool {
	return func(role, _ int32) bool { return role == of }
}

// heldRoles calls do for each role of a kind that some identity may hold.
func (c *combiner) heldRoles(clusterRoles bool, do func(v vertex, k key, role *rbac.RoleRules)) {
	for _, v := range c.roleVertices {
		k := c.keys[v]
		role := &c.roles[k.role]
		if int(k.role) < len(c.roles)-1 && (role.Role.Kind == "ClusterRole") == clusterRoles {
			do(v, k, role)
		}
	}
}

// changesSome reports whether two rights are for one cluster role that exists.
func (c *combiner) changesSome(e, u held) bool {
	if e.name == "" && u.name == "" {
		return true
	}
	for i := range c.roles[:c.existing] {
		if role := c.roles[i].Role; role.Namespace == "" && e.covers("", role.Name) && u.covers("", role.Name) {
			return true
		}
	}
	return false
}

// roleExists reports whether a role exists. Others are named by bindings.
func (b *builder) roleExists(role int32) bool { return int(role) < b.existing }
