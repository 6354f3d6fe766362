package attackpaths

import (
	"cmp"
	"strings"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// dependsOnRole is what else decides about a role of which the objects do not show whether it exists.
const dependsOnRole = "whether the role exists: Kubernetes makes roles of such names"

// escalate: escalate on a role, and a right to write it, where the role is held. It is enough to write a
// role that an aggregated cluster role selects which is held: whoever writes a role chooses its labels.
func (c *combiner) escalate() {
	for _, kinds := range [...]struct{ escalate, create, update right }{
		{escalateClusterRoles, createClusterRoles, updateClusterRoles},
		{escalateRoles, createRoles, updateRoles},
	} {
		for _, e := range c.have(kinds.escalate) {
			for _, w := range c.have(kinds.update) {
				c.escalateWith(e, w)
			}
			for _, w := range c.have(kinds.create) {
				c.escalateNew(e, w)
			}
		}
	}
}

// escalateWith changes the rules of a role that is held, or makes another one a part of it.
func (c *combiner) escalateWith(e, u held) {
	labels := e.right == escalateClusterRoles && c.changesSome(e, u)
	c.heldRoles(e.right == escalateClusterRoles, func(v vertex, k key, role *rbac.RoleRules) {
		switch {
		case c.roleExists(k.role) && e.covers(role.Role.Namespace, role.Role.Name) && u.covers(role.Role.Namespace, role.Role.Name):
			c.escalatesTo(k, c.changedRoleGuards(u.right, k.role), e, u, v)
		case labels && role.Aggregates:
			c.escalatesTo(k, c.guardsOf(u.right, ""), e, u, v)
		}
	})
}

// escalateNew makes a role that a binding names and that does not exist, or a part of one. A new object
// has a name when its rights are checked if the request has one.
func (c *combiner) escalateNew(e, w held) {
	if e.name != "" && len(w.parts) == 0 || e.name != "" && w.name != "" && e.name != w.name {
		return
	}
	w.name = cmp.Or(w.name, e.name)
	c.heldRoles(e.right == escalateClusterRoles, func(v vertex, k key, role *rbac.RoleRules) {
		in := func(h held) bool { return h.covers(role.Role.Namespace, role.Role.Name) }
		switch {
		case !c.roleExists(k.role) && in(e) && in(w) && !c.terminating[role.Role.Namespace]:
			guards := c.guardsOf(w.right, role.Role.Namespace)
			if strings.HasPrefix(role.Role.Name, "system:") {
				guards = allOf(dependsOnRole, guards)
			}
			c.escalatesTo(k, guards, e, w, v)
		case role.Aggregates && c.isFree(w, ""):
			c.escalatesTo(k, c.guardsOf(w.right, ""), e, w, v)
		}
	})
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

func (c *combiner) escalatesTo(k key, dependsOn string, e, w held, role vertex) {
	c.pair(EscalateRole, c.ownRole(int32(len(c.roles)-1), k.namespace), dependsOn, e, w, role)
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
