package attackpaths

import (
	"cmp"
	"slices"
	"strings"

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
	// limits are what roles grant to requesters, and onRights `impersonate-on` rights.
	limits   map[roleScope][]limit
	onRights map[roleScope][]onRight
	targets  map[vertex]*target
	// own are the rights that the attacker can give to each identity that it holds.
	own map[onRight]vertex
	// empty are limited identities that can do nothing.
	empty        map[key]bool
	associations []vertex
}

// roleScope is a role in the whole cluster or in some namespace.
type roleScope struct {
	role       int32
	namespaced bool
}

// target is what an identity that is impersonated may do.
type target struct {
	subjects []vertex
	requests []granting
	// checked are the rights that the API server checks beside the request.
	checked []ownKey
}

// granting is a limit and the binding that gives it.
type granting struct {
	limit
	binding int32
}

// onRight is a right `impersonate-on:MODE:VERB`.
type onRight struct {
	mode mode
	limit
}

func (o onRight) compare(p onRight) int {
	return cmp.Or(cmp.Compare(o.mode, p.mode), cmp.Compare(o.request, p.request),
		cmp.Compare(o.namespace, p.namespace), cmp.Compare(o.name, p.name))
}

// startImpersonation finds the modes that roles grant, and adds what many are impersonated through.
func (b *builder) startImpersonation() {
	b.impersonator = impersonator{
		limits: map[roleScope][]limit{}, onRights: map[roleScope][]onRight{}, targets: map[vertex]*target{},
		users: map[string]bool{}, own: map[onRight]vertex{}, empty: map[key]bool{},
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
			b.modes[g.right.mode()] = true
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

// onRightsOf lists the `impersonate-on` rights that a role grants, in the modes that some role grants.
func (b *builder) onRightsOf(s roleScope) []onRight {
	all, ok := b.onRights[s]
	if !ok {
		for m := range modeCount {
			if b.modes[m] {
				for _, l := range limitsOf(b.roles[s.role].Rules, s.namespaced, m) {
					all = append(all, onRight{m, l})
				}
			}
		}
		b.onRights[s] = all
	}
	return all
}

// onRightsOfSubjects lists the `impersonate-on` rights of the roles that are bound to subjects.
// Everything in a namespace contains what any impersonation gives there, but for nodes.
func (b *builder) onRightsOfSubjects(subjects []vertex) []onRight {
	var all []onRight
	for _, s := range subjects {
		for _, e := range b.out[s] {
			k := b.keys[e.to]
			if b.rightsOfRole(k.role).everything && (k.namespace == "" || k.variant != restricted) {
				continue
			}
			for _, o := range b.onRightsOf(roleScope{k.role, k.namespace != ""}) {
				o.namespace = k.namespace
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, onRight.compare)
	return slices.Compact(all)
}

// addOwnOnRights adds the `impersonate-on` rights of a role that the attacker can bind to any subject.
func (b *builder) addOwnOnRights(v vertex, k key) {
	for _, o := range b.onRightsOf(roleScope{k.role, k.namespace != ""}) {
		o.namespace = k.namespace
		if _, ok := b.impersonator.own[o]; !ok {
			k := key{kind: isOwnRight, mode: o.mode, variant: uint8(o.request), namespace: o.namespace, name: o.name}
			b.impersonator.own[o] = b.vertex(k)
		}
		b.implies(v, b.impersonator.own[o])
	}
}

// targetOf is what an identity may do by the bindings of its subjects.
func (b *builder) targetOf(v vertex) *target {
	if t := b.targets[v]; t != nil {
		return t
	}
	t := &target{subjects: b.subjectsOfIdentity(b.keys[v])}
	seen := map[limit]bool{}
	checked := map[ownKey]bool{}
	for _, s := range t.subjects {
		for _, e := range b.out[s] {
			k := b.keys[e.to]
			for _, l := range b.limitsOfRole(roleScope{k.role, k.namespace != ""}) {
				l.namespace = k.namespace
				if r := requests[l.request].right; !seen[l] && (k.variant != restricted || !refusedToNodes(r)) {
					seen[l] = true
					t.requests = append(t.requests, granting{l, e.arg})
				}
			}
			rights := b.rightsOfRole(k.role)
			list := rights.cluster
			if k.namespace != "" {
				list = rights.namespaced
			}
			for _, g := range list {
				if g.right.checkedBeside() {
					checked[ownKey{g.right, k.namespace, g.name}] = true
				}
			}
		}
	}
	for k := range checked {
		t.checked = append(t.checked, k)
	}
	b.targets[v] = t
	return t
}

func (b *builder) limitsOfRole(s roleScope) []limit {
	all, ok := b.limits[s]
	if !ok {
		all = limitsOf(b.roles[s.role].Rules, s.namespaced, 0)
		b.limits[s] = all
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
