package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// With constrained impersonation a requester may act as another identity for some requests only.
// It needs `impersonate:MODE` on the identity and, for each request, `impersonate-on:MODE:VERB` on
// what the request is about. The request is then authorized for the impersonated identity.
// Impersonated identities cannot impersonate.
//
// A limited identity stands for an identity and one of the rights `impersonate-on:MODE:VERB`: it has
// the rights of the identity that this one covers. What the API server checks beside the request,
// such as bind, it checks of the impersonated identity alone.
//
// Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation, KEP-5284.

// mode is a mode of constrained impersonation, and zero anything else.
type mode uint8

const (
	associatedNode mode = 1 + iota
	arbitraryNode
	serviceAccountMode
	userInfoMode
	modeCount
)

func (m mode) String() string {
	return [...]string{"", "associated-node", "arbitrary-node", "serviceaccount", "user-info"}[m]
}

// suits reports whether an identity can be impersonated in a mode.
func (m mode) suits(k key) bool {
	switch k.kind {
	case isNodeUser:
		return m == associatedNode || m == arbitraryNode
	case isServiceAccount:
		return m == serviceAccountMode
	case isUser:
		return m == userInfoMode && plainUser(k.name)
	case isGroup:
		return m == userInfoMode && k.name != masters
	case isFact:
		return true // each of its members is asked about
	}
	return false
}

// plainUser reports whether a user is neither a node nor a service account.
func plainUser(name string) bool {
	_, _, isAccount := accountOfUser(name)
	return !isAccount && !strings.HasPrefix(name, nodeidentity.UserPrefix)
}

// everyName are both in a rule and in the check of many groups at once.
const everyName = "*"

// impersonator combines constrained impersonation for a builder.
type impersonator struct {
	// modes are those that a role grants.
	modes [modeCount]bool
	// users are those that bindings name.
	users map[string]bool
	// allowed are the requests that roles let be made, and modeRights `impersonate-on` rights.
	allowed, modeRights map[roleScope][]modeRight
	targets             map[vertex]*target
	// empty are limited identities that can do nothing.
	empty map[key]bool
}

// roleScope is a role in the whole cluster or in some namespace.
type roleScope struct {
	role       int32
	namespaced bool
}

func scopeOfRole(role key) roleScope { return roleScope{role.role, role.namespace != ""} }

// target is what an identity that is impersonated may do.
type target struct {
	subjects []vertex
	requests []granting
	// checked are the rights that the API server checks beside the request.
	checked map[grant]origin
}

// granting is a request that a binding lets be made.
type granting struct {
	modeRight
	binding int32
}

// startImpersonation finds the modes that roles grant, and adds what many are impersonated through.
func (b *builder) startImpersonation() {
	b.impersonator = impersonator{
		allowed: map[roleScope][]modeRight{}, modeRights: map[roleScope][]modeRight{}, targets: map[vertex]*target{},
		users: map[string]bool{}, empty: map[key]bool{},
	}
	if !b.cluster.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		return
	}
	for i := range b.roles[:len(b.roles)-1] {
		rights := b.rightsOfRole(int32(i))
		if rights.everything {
			continue // it contains the right to impersonate without constraint
		}
		for _, g := range rights.cluster {
			b.modes[b.kinds[g.right].mode] = true
		}
	}
	b.modes[0] = false
	if b.modes == [modeCount]bool{} {
		return
	}
	for _, name := range [...]string{everyUser, everyGroup, everyNodeUser, everyAccountName} {
		b.impersonatedFact(name, "")
	}
	for _, user := range b.subjectsOf("User") {
		b.users[user] = true
	}
}

// modeRightsIn lists the `impersonate-on` rights that rules grant, in the modes that some role grants.
func (b *builder) modeRightsIn(rules []rbacv1.PolicyRule, namespaced bool) (all []modeRight) {
	for m := range modeCount {
		if b.modes[m] {
			all = append(all, requestsIn(rules, namespaced, m)...)
		}
	}
	return all
}

func (b *builder) modeRightsOf(s roleScope) []modeRight {
	all, ok := b.modeRights[s]
	if !ok {
		all = b.modeRightsIn(b.roles[s.role].Rules, s.namespaced)
		b.modeRights[s] = all
	}
	return all
}

// modeRightsOfSubjects lists the `impersonate-on` rights of the roles that are bound to subjects.
// Everything in a namespace contains what any impersonation gives there, but for nodes.
func (b *builder) modeRightsOfSubjects(subjects []vertex) []modeRight {
	var all []modeRight
	b.eachRole(subjects, func(role key, _ int32) {
		if b.rightsOfRole(role.role).everything && (role.namespace == "" || role.variant != restricted) {
			return
		}
		for _, o := range b.modeRightsOf(scopeOfRole(role)) {
			o.namespace = role.namespace
			all = append(all, o)
		}
	})
	slices.SortFunc(all, modeRight.compare)
	return slices.Compact(all)
}

// targetOf is what an identity may do by the bindings of its subjects.
func (b *builder) targetOf(v vertex) *target {
	if t := b.targets[v]; t != nil {
		return t
	}
	t := &target{subjects: b.subjectsOfIdentity(b.keys[v]), checked: map[grant]origin{}}
	seen := map[modeRight]bool{}
	b.eachRole(t.subjects, func(role key, binding int32) {
		refused := func(r right) bool { return role.variant == restricted && b.kinds[r].refused }
		for _, o := range b.requestsOf(scopeOfRole(role)) {
			if o.namespace = role.namespace; !seen[o] && !refused(requests[o.request].right) {
				seen[o] = true
				t.requests = append(t.requests, granting{o, binding})
			}
		}
		for _, g := range b.grantsOf(role) {
			if _, known := t.checked[g]; !known && b.kinds[g.right].beside {
				t.checked[g] = origin{binding: binding}
			}
		}
	})
	b.targets[v] = t
	return t
}

// requestsOf lists the requests that a role lets be made.
func (b *builder) requestsOf(s roleScope) []modeRight {
	all, ok := b.allowed[s]
	if !ok {
		all = requestsIn(b.roles[s.role].Rules, s.namespaced, 0)
		b.allowed[s] = all
	}
	return all
}

// subjectsOfIdentity are the subjects of an identity that is impersonated.
func (b *builder) subjectsOfIdentity(k key) []vertex {
	switch k.kind {
	case isNodeUser:
		return b.subjects(k.name, restricted, nodeidentity.Group, authenticated)
	case isServiceAccount, isAssociated:
		return b.subjects(userOfAccount(k.namespace, k.name), anybody,
			allServiceAccounts, allServiceAccounts+":"+k.namespace, authenticated)
	case isGroup:
		return b.subjects("", anybody, k.name, authenticated)
	}
	return b.subjects(k.name, anybody, authenticated)
}
