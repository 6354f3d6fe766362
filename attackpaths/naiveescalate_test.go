package attackpaths_test

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

func (n *naive) escalateRoles() {
	n.escalateDiscovery()
	n.eachOwned(func(r naiveRole, scope string) {
		if r.ref == everythingRole {
			return
		}
		held := heldRole(r.ref, scope)
		n.step(0, false, held, owned(r.ref, scope))
		for _, i := range n.identities {
			n.static(i.user, i.groups, func(bound naiveRole, where string) {
				if bound.ref != r.ref || where != scope {
					return
				}
				if i.token == nil {
					n.step(0, false, held, as(i.fact))
				} else {
					n.step(0, true, heldInScopes(r.ref, scope, i.token.account), as(i.fact))
				}
			})
		}
		for _, sender := range n.senders() {
			n.anonymous(func(bound naiveRole, where string) {
				if bound.ref == r.ref && where == scope {
					n.step(0, true, held, sender)
				}
			})
		}
		helds := []fact{held}
		for _, a := range n.scopedAccounts {
			helds = append(helds, heldInScopes(r.ref, scope, a))
		}
		for _, held := range helds {
			n.escalateRole(r, scope, held)
		}
	})
}

// discovery is a default role that all users hold, also where the objects do not show it.
const discovery = "system:discovery"

// escalateDiscovery deletes the role and makes it again.
func (n *naive) escalateDiscovery() {
	role := rbac.Ref{Kind: "ClusterRole", Name: discovery}
	if slices.ContainsFunc(n.roles, func(r naiveRole) bool { return r.ref == role }) {
		return
	}
	create := ask{verbs: creating, group: rbacGroup, resource: "clusterroles"}
	escalate := ask{verbs: verbs("escalate"), group: rbacGroup, resource: "clusterroles", name: discovery, unlimited: true}
	n.step(1, true, owned(everythingRole, ""), n.together([]ask{escalate}, []ask{create}), n.deleted(create, discovery))
}

// escalateRole leads from a role that is held to every rule: the role is written, or one that it selects.
func (n *naive) escalateRole(r naiveRole, scope string, held fact) {
	home := r.ref.Namespace // cluster roles are changed in the whole cluster
	resource := strings.ToLower(r.ref.Kind) + "s"
	changed := func(name string) fact {
		role := rbac.Ref{Kind: r.ref.Kind, Namespace: home, Name: name}
		return n.together(onRoles(verbs("escalate"), role, home), onRoles(changing, role, home))
	}
	// A new object has no name when rights are checked.
	anyName := ask{group: rbacGroup, resource: resource, ns: home, name: anyOtherName, unlimited: true}
	escalate, create := anyName, anyName
	escalate.verbs, create.verbs, create.name = verbs("escalate"), creating, ""
	made := fact{"makes any " + resource, home, ""}
	n.step(0, false, made, n.together([]ask{escalate}, []ask{create}))
	madeAs := func(name string) fact { // the API server asks with the name that the request has
		role := rbac.Ref{Kind: r.ref.Kind, Namespace: home, Name: name}
		parts := append(byName(create, name), onRoles(verbs("escalate"), role, home))
		parts[0][0].limited = false
		return n.together(parts...)
	}
	makes := n.guarded(admissionv1.Create, rbacGroup, resource, "", home)
	if r.missing {
		n.step(1, makes || strings.HasPrefix(r.ref.Name, "system:"), owned(everythingRole, scope), held, made)
		n.step(1, makes || strings.HasPrefix(r.ref.Name, "system:"), owned(everythingRole, scope), held, madeAs(r.ref.Name))
		return
	}
	n.step(1, n.changedRoleGuarded(r), owned(everythingRole, scope), held, changed(r.ref.Name))
	madeWithout := func(role rbac.Ref) fact {
		f := fact{"makes role without", role.String(), ""}
		parts := append(byName(create, role.Name), onRoles(verbs("escalate"), role, home))
		parts[0][0].limited = false
		n.step(0, false, f, n.without(n.ofRole(role), parts...))
		n.step(0, false, f, n.without(n.ofRole(role), []ask{escalate}, []ask{create}))
		return f
	}
	n.step(1, makes, owned(everythingRole, scope), held, madeWithout(r.ref), n.deleted(create, r.ref.Name))
	if !r.aggregates {
		return
	}
	changes := n.guarded(admissionv1.Update, rbacGroup, resource, "", home)
	makes = makes || changes // a controller updates the role
	n.step(1, makes, owned(everythingRole, scope), held, made)
	for _, name := range append(n.allNames(), anyOtherName) {
		if n.isFree(create, name) {
			n.step(1, makes, owned(everythingRole, scope), held, madeAs(name))
			continue
		}
		again := rbac.Ref{Kind: r.ref.Kind, Namespace: home, Name: name}
		n.step(1, makes, owned(everythingRole, scope), held, madeWithout(again), n.deleted(create, name))
	}
	n.step(1, changes, owned(everythingRole, scope), held, changed(anyOtherName))
	for _, other := range n.roles {
		if other.ref.Kind == r.ref.Kind && !other.missing {
			n.step(1, changes, owned(everythingRole, scope), held, changed(other.ref.Name))
		}
	}
}

// unseenRoles adds roles that exist in each cluster, those that only bindings name, and the role with every rule.
func (n *naive) unseenRoles() {
	all := []string{"*"}
	every := []rbacv1.PolicyRule{{Verbs: all, APIGroups: all, Resources: all}}
	add := func(r naiveRole) {
		if !slices.ContainsFunc(n.roles, func(known naiveRole) bool { return known.ref == r.ref }) {
			n.roles = append(n.roles, r)
		}
	}
	add(naiveRole{ref: rbac.Ref{Kind: "ClusterRole", Name: "cluster-admin"}, rules: every, everything: true, ending: n.ending})
	for _, name := range []string{"admin", "edit"} {
		ref := rbac.Ref{Kind: "ClusterRole", Name: name}
		rules, _ := rbac.DefaultRules(ref)
		add(naiveRole{ref: ref, rules: rules, ending: n.ending})
	}
	for _, b := range n.bindings {
		if b.Role.Kind == "ClusterRole" || b.Role.Kind == "Role" && b.Binding.Namespace != "" {
			add(naiveRole{ref: b.Role, missing: true, ending: n.ending})
		}
	}
	n.roles = append(n.roles, naiveRole{ref: everythingRole, rules: every, everything: true, ending: n.ending})
}
