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
	// targets are the requests of identities that are impersonated.
	targets map[vertex][]part
	// empty are limited identities that can do nothing.
	empty map[key]bool
}

// startImpersonation finds the modes that roles grant, and adds what many are impersonated through.
func (b *builder) startImpersonation() {
	b.impersonator = impersonator{targets: map[vertex][]part{}, empty: map[key]bool{}}
	if !b.cluster.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		return
	}
	for _, role := range b.roles {
		if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return grantsEverything(&rule) }) {
			continue // it contains the right to impersonate without constraint
		}
		for r := impersonateAssociatedNode; r <= impersonateGroupInfo; r++ {
			for i := range role.Rules {
				if k := &requestKinds[r]; len(k.namesBy(&role.Rules[i])) > 0 {
					b.modes[k.mode] = true
				}
			}
		}
	}
	if !b.constrains() {
		return
	}
	for _, name := range [...]string{everyUser, everyGroup, everyNodeUser, everyAccountName} {
		b.impersonatedFact(name, "")
	}
}

// constrains reports whether a role grants some mode.
func (b *builder) constrains() bool { return b.modes != [modeCount]bool{} }

// requestsOf lists what an identity may do by the bindings of its subjects.
func (b *builder) requestsOf(v vertex) []part {
	all, ok := b.targets[v]
	if ok {
		return all
	}
	seen := map[part]bool{}
	b.eachPart(b.subjectsOfIdentity(b.keys[v]), func(p part) {
		id := p
		if id.binding = 0; !seen[id] {
			seen[id] = true
			all = append(all, p)
		}
	})
	b.targets[v] = all
	return all
}

// subjectsOfIdentity are the subjects of an identity.
func (b *builder) subjectsOfIdentity(k key) []vertex {
	switch k.kind {
	case isNodeUser:
		return b.subjects(k.name, restricted, nodeidentity.Group, authenticated)
	case isServiceAccount, isAssociated:
		return b.subjects(userOfAccount(k.namespace, k.name), anybody,
			allServiceAccounts, allServiceAccounts+":"+k.namespace, authenticated)
	case isGroup:
		return b.subjects("", anybody, k.name, authenticated)
	case isFact: // a user with every group
		return append(b.subjects(k.namespace, anybody), b.everyGroupSubject()...)
	}
	return b.subjects(k.name, anybody, authenticated)
}
