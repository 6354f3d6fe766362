package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// A certificate or an impersonation may carry a user and any groups at once, so that rights of both
// count together for one requester. It carries one user only.

// expandTogether adds a user together with every group; the empty name is a user without rights.
func (b *builder) expandTogether(v vertex, k key) {
	b.holds(v)
	var subjects []vertex
	if user := k.namespace; user != "" {
		subjects = b.subjects(user, anybody)
	}
	b.addIdentity(v, k, append(subjects, b.everyGroupSubject()...))
}

// everyGroupSubject lists the groups that an identity may be in: each that bindings name but
// system:masters.
func (b *builder) everyGroupSubject() []vertex {
	if b.groups == nil {
		groups := slices.DeleteFunc(b.subjectsOf("Group"), func(g string) bool { return g == masters })
		b.groups = b.subjects("", anybody, groups...)
	}
	return b.groups
}

// expandEveryIdentity adds the users whose own rights may count together with those of groups.
func (b *builder) expandEveryIdentity(v vertex, k key) {
	accounts, with := k.name == everyIdentity, key{kind: isFact, name: userWithGroups}
	b.implies(v, b.memberOf(k, with))
	for _, user := range b.subjectsOf("User") {
		if _, _, isAccount := accountOfUser(user); (accounts || !isAccount) && b.countsWithGroups(user) {
			with.namespace = user
			b.implies(v, b.memberOf(k, with))
		}
	}
}

// countsWithGroups reports whether a user that is no node has a right that counts together with one
// of a group.
func (b *builder) countsWithGroups(user string) bool {
	if strings.HasPrefix(user, nodeidentity.UserPrefix) || b.denied(user) {
		return false
	}
	if b.ofGroups == nil {
		sides := b.sidesOf(b.everyGroupSubject())
		b.ofGroups = &sides
	}
	own := b.sidesOf(b.subjects(user, anybody))
	return own[0]&b.ofGroups[1] != 0 || own[1]&b.ofGroups[0] != 0
}

// sides are the pairs of rights of which one is had, and those of which the other is: a bit for each.
type sides [2]uint8

func (b *builder) sidesOf(subjects []vertex) sides {
	var has sides
	for k := range b.rightsOfSubjects(subjects) {
		pair, side := k.right.sideOfPair()
		has[side] |= 1 << pair
	}
	if len(b.onRightsOfSubjects(subjects)) > 0 {
		has[1] |= 1 << constrainedPair
	}
	// Users and groups of constrained impersonation are three with what they are for.
	if has[0]&(1<<constrainedPair) != 0 {
		has[1] |= 1 << constrainedPair
	}
	return has
}

// pairsOfRights are the rights of which one of the first and one of the second count together.
var pairsOfRights = [...][2][]right{
	{{bindClusterRoles, bindRoles}, {createClusterRoleBindings, updateClusterRoleBindings, createRoleBindings, updateRoleBindings}},
	{{escalateClusterRoles, escalateRoles}, {updateClusterRoles, updateRoles}},
	{{impersonateGroups}, {impersonateUsers, impersonateServiceAccounts}},
	{{approveSigners, signSigners}, {updateApprovals, updateSigningStatus}},
	{{autoApprove}, {createSigningRequests}},
	{{impersonateNodeNames}, nil},
}

// constrainedPair is the pair of the other rights, which are those of constrained impersonation.
const constrainedPair = len(pairsOfRights)

// sideOfPair says in which pair of rights that count together a right is, and on which side.
func (r right) sideOfPair() (pair, side int) {
	for pair := range pairsOfRights {
		for side, rights := range pairsOfRights[pair] {
			if slices.Contains(rights, r) {
				return pair, side
			}
		}
	}
	return constrainedPair, 0
}

// impersonateTogether gives a user or service account that is impersonated with every group.
func (c *combiner) impersonateTogether(u, g held) {
	switch {
	case g.name != "":
	case u.right == impersonateServiceAccounts:
		c.pair(Impersonate, c.impersonatedFact(userWithGroups, ""), "", u, g)
		for _, user := range c.subjectsOf("User") {
			namespace, name, isAccount := accountOfUser(user)
			if isAccount && u.covers(namespace, name) && c.countsWithGroups(user) {
				c.pair(Impersonate, c.impersonatedFact(userWithGroups, user), "", u, g)
			}
		}
	case u.name == "":
		c.pair(Impersonate, c.impersonatedFact(everyPlainIdentity, ""), "", u, g)
	default:
		c.pair(Impersonate, c.impersonatedFact(userWithGroups, ""), "", u, g)
		if c.countsWithGroups(u.name) {
			c.pair(Impersonate, c.impersonatedFact(userWithGroups, u.name), "", u, g)
		}
	}
}
