package attackpaths

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Variants of subjects and roles.
const (
	// anybody is any identity.
	anybody uint16 = iota
	// restricted is a node's credential, whose writes NodeRestriction checks.
	restricted
	// own is each identity of the attacker: it can bind the role to any of them.
	own
	// ownOfOthers is own for identities that are not nodes: NodeRestriction does not check them.
	ownOfOthers
	// impersonated is an identity as which the attacker only acts by impersonation, and
	// impersonatedNode the same for a node's: they give no right to impersonate. Vertices of
	// identities have the former too.
	impersonated
	impersonatedNode
)

type roleName struct{ namespace, name string }

// addSubjects adds what bindings give to users and groups.
func (b *builder) addSubjects() {
	for i, bound := range b.bindings {
		role, ok := b.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]
		if !ok || (bound.Role.Kind == "Role") != (bound.Role.Namespace != "") {
			continue // it grants nothing
		}
		for _, s := range bound.Subjects {
			user, group, ok := principal(s)
			if !ok {
				continue
			}
			for _, variant := range [...]uint16{anybody, restricted} {
				mayBeNode := strings.HasPrefix(user, nodeUserPrefix) || group == nodeidentity.Group || group == authenticated
				if variant == restricted && !mayBeNode {
					continue
				}
				subject := b.vertex(subjectKey(user, group, variant))
				held := b.vertex(key{kind: isRole, variant: variant, namespace: bound.Binding.Namespace, role: role})
				b.impliesBy(subject, held, int32(i))
			}
		}
	}
}

// principal is the user or group that a subject stands for.
func principal(s rbacv1.Subject) (user, group string, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name, "", true
	case rbacv1.GroupKind:
		return "", s.Name, true
	case rbacv1.ServiceAccountKind:
		return nodeidentity.ServiceAccountUser(s.Namespace, s.Name), "", s.Namespace != ""
	}
	return "", "", false
}

func subjectKey(user, group string, variant uint16) key {
	if group != "" {
		return key{kind: isSubject, variant: variant, name: "group " + group}
	}
	return key{kind: isSubject, variant: variant, name: "user " + user}
}

// subjects are the vertices of a user and groups, as far as bindings name them.
func (b *builder) subjects(user string, variant uint16, groups ...string) []vertex {
	var found []vertex
	add := func(k key) {
		if v, ok := b.index[k]; ok {
			found = append(found, v)
		}
	}
	if user != "" {
		add(subjectKey(user, "", variant))
	}
	for _, g := range groups {
		add(subjectKey("", g, variant))
	}
	return found
}

// scheduler is the user of kube-scheduler, which its pod names without a binding: Kubernetes makes the binding.
const scheduler = "system:kube-scheduler"

// subjectsOf lists the users or groups that bindings name, and the users of kube-scheduler and of bootstrap tokens, sorted. Nodes'
// users are left out: they count only together with their group.
func (b *builder) subjectsOf(kind string) []string {
	names := map[string]bool{}
	if kind == "User" && slices.ContainsFunc(b.pods, func(p *inventory.Pod) bool { return p.ControlPlane == "kube-scheduler" }) {
		names[scheduler] = true
	}
	for i := range b.objects.secrets {
		if user, ok := bootstrapUser(&b.objects.secrets[i]); ok && kind == "User" {
			names[user] = true
		}
	}
	for _, bound := range b.bindings {
		for _, s := range bound.Subjects {
			user, group, ok := principal(s)
			switch {
			case !ok:
			case kind == "User" && user != "":
				names[user] = true
			case kind == "Group" && group != "":
				names[group] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// expandRole gives the rights that a role grants.
func (b *builder) expandRole(v vertex, k key) {
	if k.variant == ownOfOthers || k.variant == ownFree || k.variant == heldInScopes {
		return // it is a part of the role, or of a token
	}
	if k.variant == own && b.enforced > 0 {
		v = b.ownFor(v, ownFree, holdsFree)
	}
	rights := b.rightsOfRole(k.role)
	if rights.everything && k.namespace == "" { // cluster-admin owns the rest
		admin := b.vertex(key{kind: isClusterAdmin})
		if k.variant == own && b.enforced == 0 {
			b.implies(v, admin) // the step that gives the role is the last one
		} else {
			b.step(Masters, v, admin, -1, "")
		}
		return
	}
	for _, g := range b.grantsOf(k) {
		kind := &b.kinds[g.right]
		nodes := k.variant == restricted || k.variant == impersonatedNode
		if nodes && kind.refused || (k.variant == impersonated || k.variant == impersonatedNode) && kind.impersonates() {
			continue
		}
		v := v
		if k.variant == own && kind.refused {
			v = b.ownFor(v, ownOfOthers, holdsIdentity)
		}
		if g.right.countsAlone() {
			b.implies(v, b.rightVertex(g.right, g.namespace, g.name))
		}
		// What everything in a namespace gives together with other rights, it gives anyway,
		// but for a service account with which groups can be impersonated.
		if k.variant == own && g.right.countsTogether() && (!rights.everything || g.right == impersonateServiceAccounts) {
			b.implies(v, b.vertex(key{kind: isOwnRight, variant: uint16(g.right), namespace: g.namespace, name: g.name}))
		}
	}
}

// ownFor is a role that the attacker can bind to some of its identities only, if a fact holds.
func (b *builder) ownFor(role vertex, variant uint16, fact string) vertex {
	k := b.keys[role]
	k.variant = variant
	part, ok := b.index[k]
	if !ok {
		part = b.vertex(k)
		b.together("", part, "", role, b.fact(fact, ""))
	}
	return part
}

// grant is a right, as far as something limits it.
type grant struct {
	right right
	limit
}

func (g grant) compare(o grant) int {
	return cmp.Or(cmp.Compare(g.right, o.right), cmp.Compare(g.namespace, o.namespace), cmp.Compare(g.name, o.name))
}

// rightsOf lists what the rules of a role grant, in the order of rights and of names: in the whole cluster, or in a
// namespace.
func (b *builder) rightsOf(rules []rbacv1.PolicyRule, namespaced bool) []grant {
	var all []grant
	for r := range b.kinds {
		k := &b.kinds[r]
		if namespaced && !k.namespaced || k.on != 0 && !b.modes[k.on] {
			continue
		}
		for i := range rules {
			for _, name := range k.namesBy(&rules[i]) {
				all = append(all, grant{right(r), limit{name: name}})
			}
		}
	}
	slices.SortFunc(all, grant.compare)
	return slices.Compact(all)
}

// roleRights are what the rules of a role grant in the whole cluster and in one namespace.
type roleRights struct {
	cluster, namespaced []grant
	everything          bool
	// parts are the same verb by verb; nil until they are asked for.
	parts []part
}

func (b *builder) rightsOfRole(role int32) *roleRights {
	r := b.roleRights[role]
	if r == nil {
		rules := b.roles[role].Rules
		r = &roleRights{
			cluster: b.usedParts(b.rightsOf(rules, false)), namespaced: b.usedParts(b.rightsOf(rules, true)),
			everything: slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return grantsEverything(&rule) }),
		}
		b.roleRights[role] = r
	}
	return r
}

// grantsOf lists what a role grants where it is held.
func (b *builder) grantsOf(role key) []grant {
	if role.namespace == "" {
		return b.rightsOfRole(role.role).cluster
	}
	var all []grant
	for _, g := range b.rightsOfRole(role.role).namespaced {
		if b.kinds[g.right].holdsIn(role.namespace) {
			g.namespace = role.namespace
			all = append(all, g)
		}
	}
	return all
}

// The API server impersonates once per request, and checks the right to do so of the requester only.
// So an identity of which the attacker holds no credential, and as which it can only act by
// impersonation, is another vertex than the identity itself: its roles give it no right to impersonate,
// and as a service account it has no token. With a credential the attacker holds both. A token or
// certificate that the impersonated identity gets is a credential again.
//
// An identity that has no right to impersonate, and no use of a token's node, is the same for both.
//
// Own roles count as before: there is always an identity of which a credential is held, or an
// anonymous request, and the attacker can bind them to it.
//
// Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation.

// asImpersonated is the vertex of an identity, or of several, as which the attacker acts by
// impersonation; none if it may do nothing.
func (b *builder) asImpersonated(k key) vertex {
	if k.kind == isServiceAccount && b.denied(nodeidentity.ServiceAccountUser(k.namespace, k.name)) {
		return none
	}
	if k.variant = 0; b.needsCredential(k) {
		k.variant = impersonated
	}
	return b.vertex(k)
}

// needsCredential reports whether an identity, or one of several, can do more with a credential than
// who impersonates it.
func (b *builder) needsCredential(k key) bool {
	return k.kind == isServiceAccount && b.associates() || k.kind == isFact && k.name != userWithGroups ||
		slices.ContainsFunc(b.subjectsOfIdentity(k), func(s vertex) bool { return b.impersonatedSubject(s) != s })
}

func (b *builder) impersonatedFact(name, namespace string) vertex {
	return b.asImpersonated(key{kind: isFact, namespace: namespace, name: name})
}

// memberOf is the vertex of an identity that a fact stands for.
func (b *builder) memberOf(fact, member key) vertex {
	if fact.variant == impersonated {
		return b.asImpersonated(member)
	}
	if member.kind == isServiceAccount {
		return b.accountVertex(member.namespace, member.name)
	}
	return b.vertex(member)
}

// actsAs lets the holder of an identity's credential do what can be done as the identity.
func (b *builder) actsAs(v vertex, k key) {
	if k.variant != impersonated {
		return
	}
	k.variant = 0
	b.implies(b.vertex(k), v)
	b.alsoImpersonated[b.vertex(k)] = true
}

// impersonatedSubject is a subject as far as its roles do not give rights to impersonate.
func (b *builder) impersonatedSubject(s vertex) vertex {
	if v, ok := b.impersonatedSubjects[s]; ok {
		return v
	}
	v := s
	if slices.ContainsFunc(b.edges.Out[s], func(e edge) bool { return b.impersonates(b.keys[e.To]) }) {
		k := b.keys[s]
		k.variant = whenImpersonated(k.variant)
		v = b.vertex(k)
		for _, e := range b.edges.Out[s] {
			role := b.keys[e.To]
			if b.impersonates(role) {
				role.variant = whenImpersonated(role.variant)
			}
			b.impliesBy(v, b.vertex(role), e.Arg)
		}
	}
	b.impersonatedSubjects[s] = v
	return v
}

// whenImpersonated is the variant of subjects and roles for identities that are impersonated.
func whenImpersonated(variant uint16) uint16 {
	if variant == restricted {
		return impersonatedNode
	}
	return impersonated
}

// impersonates reports whether a role grants a right to impersonate. What grants everything in the
// whole cluster needs none.
func (b *builder) impersonates(role key) bool {
	rights := b.rightsOfRole(role.role)
	if rights.everything && role.namespace == "" {
		return false
	}
	return slices.ContainsFunc(rights.cluster, func(g grant) bool { return b.kinds[g.right].impersonates() })
}
