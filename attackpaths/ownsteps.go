package attackpaths

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// ownRole is the vertex of a role that the attacker can bind to each identity that it holds.
func (c *combiner) ownRole(role int32, namespace string) vertex {
	return c.vertex(key{kind: isRole, variant: own, namespace: namespace, role: role})
}

// bind: a right to write a binding, and bind on the role. The API server also lets a requester bind rules that it holds,
// and compares with RBAC alone, so that an account in scopes gives what it holds by RBAC to others.
func (c *combiner) bind() {
	binds := c.have(bindClusterRoles, bindRoles)
	var holds []heldRole
	if c.who.scoped != nil {
		holds = c.who.scoped.held
	}
	if len(binds) == 0 && len(holds) == 0 {
		return
	}
	for _, w := range c.have(createClusterRoleBindings, updateClusterRoleBindings, createRoleBindings, updateRoleBindings) {
		if w.right == updateClusterRoleBindings || w.right == updateRoleBindings {
			c.bindAgain(w, binds, holds)
			continue
		}
		for _, b := range binds {
			for _, at := range c.newBindings(w, b.namespace, w, b) {
				c.bindRolesOf(w, b, at)
			}
		}
		for _, h := range holds {
			for _, at := range c.newBindings(w, h.namespace, w) {
				c.passOn(BindRole, c.ownRole(h.role, at.namespace), c.newBindingGuards(w.right, at.namespace, h.role), w, at.gone)
			}
		}
	}
}

// bindAgain adds a subject to bindings.
func (c *combiner) bindAgain(w held, binds []held, holds []heldRole) {
	for _, bound := range c.bindings {
		ns := bound.Binding.Namespace
		role, ok := c.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]
		if !ok || (ns == "") != (w.right == updateClusterRoleBindings) || !w.covers(ns, bound.Binding.Name) {
			continue
		}
		for _, b := range binds {
			if bindsRole(b, ns, bound.Role.Kind, bound.Role.Name) {
				c.pair(BindRole, c.ownRole(role, ns), c.changedBindingGuards(w.right, bound), w, b)
			}
		}
		if len(holds) > 0 && c.holdsRules(role, ns) {
			c.passOn(BindRole, c.ownRole(role, ns), c.changedBindingGuards(w.right, bound), w, none)
		}
	}
}

// newBinding is a place for a binding: a namespace, or the whole cluster. Gone is that no binding has the name any more; none if
// the name is free.
type newBinding struct {
	namespace string
	gone      vertex
}

// newBindings are the places in which a requester makes a binding of a role that it may bind, or holds, in a scope. A binding that it
// deletes first must not be the one that gives it the rights.
func (c *combiner) newBindings(w held, scope string, rights ...held) (all []newBinding) {
	in := []string{""}
	switch {
	case w.right == createRoleBindings:
		in = c.scopes(w.namespace, scope)
	case scope != "":
		return nil
	}
	for _, ns := range in {
		gone, _ := c.madeFree(w.right, ns, w.name)
		lost := func(_, binding int32) bool {
			of := c.bindings[binding].Binding
			return of.Namespace == ns && of.Name == w.name
		}
		if gone == none || c.keeps(lost, rights...) {
			all = append(all, newBinding{ns, gone})
		}
	}
	return all
}

// keeps reports whether the identity still has some rights after a role or a binding is deleted.
func (c *combiner) keeps(lost func(role, binding int32) bool, rights ...held) bool {
	for _, h := range rights {
		for _, g := range h.keys() {
			from, has := c.who.rights[g]
			if !has {
				return false // the attacker gives it to the identity, by a role that may be the one
			}
			kept := from.binding < 0
			c.eachRole(c.who.subjects, func(role key, binding int32) {
				kept = kept || !lost(role.role, binding) && slices.ContainsFunc(c.grantsOf(role), func(o grant) bool {
					return o.right == g.right && o.covers(g.namespace, g.name)
				})
			})
			if !kept {
				return false
			}
		}
	}
	return true
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
func (c *combiner) bindRolesOf(w, b held, at newBinding) {
	namespace := at.namespace
	all := b.name == "" && b.right == bindClusterRoles
	for i := range int32(len(c.roles) - 1) {
		role := c.roles[i].Role
		switch {
		case all && (role.Kind != "ClusterRole" || !c.rightsOfRole(i).everything):
		case !all && (role.Namespace != "" && role.Namespace != namespace || !bindsRole(b, namespace, role.Kind, role.Name)):
		default:
			c.pair(BindRole, c.ownRole(i, namespace), c.newBindingGuards(w.right, namespace, i), w, b, at.gone)
		}
	}
}

// impersonate: groups can be impersonated together with a user or service account only.
func (c *combiner) impersonate() {
	c.impersonateOnNodes()
	for _, g := range c.have(impersonateGroups) {
		for _, u := range slices.Concat(c.have(impersonateUsers), c.have(impersonateServiceAccounts)) {
			// The API server takes the name of a service account for that account, which needs another right.
			_, _, isAccount := accountOfUser(u.name)
			account := nodeidentity.ServiceAccountUser(u.namespace, cmp.Or(u.name, "any-other")) // scopes about a whole namespace name each
			if isAccount || u.namespace != "" && c.denied(account) {
				continue
			}
			for _, to := range c.impersonatedWith(u, g.name) {
				c.pair(Impersonate, to, "", u, g)
			}
		}
	}
}

// impersonatedWith are the identities that a right to impersonate users or service accounts gives together with a group, or
// with all groups.
func (c *combiner) impersonatedWith(u held, group string) []vertex {
	ofUsers := u.right == impersonateUsers
	var all []vertex
	switch {
	case group != "":
		all = append(all, c.asImpersonated(key{kind: isGroup, name: group}))
	case ofUsers && u.name == "":
		all = append(all, c.impersonatedFact(everyPlainIdentity, ""))
	default:
		all = append(all, c.impersonatedFact(userWithGroups, ""))
		for _, user := range c.subjectsOf("User") {
			namespace, name, isAccount := accountOfUser(user)
			if (ofUsers && user == u.name || !ofUsers && isAccount && u.covers(namespace, name)) && c.countsWithGroups(user) {
				all = append(all, c.impersonatedFact(userWithGroups, user))
			}
		}
	}
	if group == "" {
		all = append(all, c.impersonatedFact(everyGroup, ""), c.asImpersonated(key{kind: isGroup, name: masters}))
	}
	switch node, named := strings.CutPrefix(u.name, nodeUserPrefix); {
	case !ofUsers || group != "" && group != nodeidentity.Group:
	case u.name == "":
		all = append(all, c.impersonatedFact(everyNodeUser, ""))
	case named && c.has(key{kind: isNode, name: node}):
		all = append(all, c.asImpersonated(key{kind: isNodeUser, name: u.name}))
	}
	return all
}

// A node gets tokens of the accounts of its pods for the audiences that these pods name. For another one, NodeRestriction
// asks whether the node has a right of which the audience is the resource and the account the name.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const (
	audienceVerb = "request-serviceaccounts-token-audience"
	// anyAudience is the resource of rights to request audiences.
	anyAudience = "*"
)

// audienceIn is the audience that a rule has to cover. A request does not name the API server's own audience; only the API server
// knows whether a named one is its own too. A rule for every verb is about resources, unless it is about all of these.
func (k *requestKind) audienceIn(rule *rbacv1.PolicyRule) (audience string, ok bool) {
	if !k.otherAudience {
		return "", true
	}
	if len(rule.Resources) == 0 || !slices.Contains(rule.Verbs, audienceVerb) {
		return "", false
	}
	return rule.Resources[0], true
}

// audiences leads from a node that may request audiences to what it gets by them.
func (c *combiner) audiences() {
	if c.who.vertex == none || c.keys[c.who.vertex].kind != isNodeUser {
		return
	}
	for _, h := range c.have(requestAudience, requestOtherAudience) {
		of := key{kind: isRight, variant: uint16(h.right), namespace: h.namespace, name: h.name, of: c.who.vertex}
		c.add("", c.vertex(of), "", []held{h}, []vertex{c.who.vertex, h.through})
	}
}

// requestsAudience gives the accounts of pods on a node whose tokens it cannot request otherwise.
func (b *builder) requestsAudience(v vertex, k key, dependsOn string) {
	node := strings.TrimPrefix(b.keys[k.of].name, nodeUserPrefix)
	for _, i := range b.podsOn[node] {
		p := b.pods[i]
		if (limit{k.namespace, k.name}).covers(p.Namespace, p.ServiceAccount) && !b.mints(p) && b.hasTokens(p) {
			guards := allOf(dependsOn, b.guardsOf(createToken, p.Namespace))
			b.step(TokenOfPodOnNode, v, b.tokenOfPod(p, node), i, guards)
		}
	}
}

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
// does not exist. Another role may be changed or created too, and become a part of the one that is held.
func (c *combiner) escalateBy(e, w held, creates bool) {
	clusterRoles := e.right == escalateClusterRoles
	part := clusterRoles && c.changesSome(e, w)
	if creates {
		part = clusterRoles && (w.name == "" || c.free(w.right, "", w.name))
	}
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
		case itself && creates && exists && c.keeps(func(role, _ int32) bool { return role == k.role }, e, w):
			step(c.guardsOf(w.right, ns), c.deleted(deleteOf[w.right], ns, name))
		case itself && creates && !exists:
			guards := c.guardsOf(w.right, ns)
			if strings.HasPrefix(name, "system:") {
				guards = allOf(dependsOnRole, guards)
			}
			step(guards, none)
			return
		}
		if part && role.Aggregates { // a controller updates it
			step(allOf(c.guardsOf(w.right, ""), c.guardsOf(updateClusterRoles, "")), none)
		}
	})
	_, known := c.roleIndex[roleName{"", discovery}]
	if creates && clusterRoles && !known && e.covers("", discovery) && w.covers("", discovery) {
		c.pair(EscalateRole, c.ownRole(int32(len(c.roles)-1), ""), allOf(dependsOnDiscovery, c.guardsOf(w.right, "")), e, w,
			c.deleted(deleteOf[w.right], "", discovery))
	}
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
