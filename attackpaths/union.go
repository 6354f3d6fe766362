package attackpaths

import (
	"slices"
	"strings"
)

// A certificate or an impersonation may carry a user and any groups at once, so that rights of both
// count together for one requester. It carries one user only.

// expandTogether adds a user together with every group; the empty name is a user without rights.
func (b *builder) expandTogether(v vertex, k key) {
	b.holds(v)
	b.addIdentity(v, k, b.subjectsOfIdentity(k))
}

// everyGroupSubject lists the groups that an identity may be in: each that bindings name but
// system:masters.
func (b *builder) everyGroupSubject() []vertex {
	if b.groups == nil {
		groups := slices.DeleteFunc(b.subjectsOf("Group"), func(g string) bool { return g == masters })
		b.groups = b.subjects("", anybody, groups...)
		b.groupsCombine = len(b.rightsOfSubjects(b.groups)) > 0
	}
	return b.groups
}

// expandEveryIdentity adds the users whose own rights may count together with the rights of groups.
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

// countsWithGroups reports whether a user that is no node has a right that may count together with one
// of a group.
func (b *builder) countsWithGroups(user string) bool {
	return !strings.HasPrefix(user, nodeUserPrefix) && len(b.everyGroupSubject()) > 0 && b.groupsCombine &&
		!b.denied(user) && len(b.rightsOfSubjects(b.subjects(user, anybody))) > 0
}
