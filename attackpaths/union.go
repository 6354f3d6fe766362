package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// A certificate or an impersonation may carry a user and any groups at once, so that rights of both
// count together for one requester. It carries one user only.

// expandTogether adds a user together with every group; the empty name is a user without rights.
func (b *builder) expandTogether(v vertex, user string) {
	b.implies(v, b.fact(holdsIdentity, ""))
	var subjects []vertex
	if user != "" {
		subjects = b.subjects(user, anybody)
	}
	b.addIdentity(v, append(subjects, b.subjects("", anybody, b.everyGroup()...)...))
}

// everyGroup lists the groups that an identity may be in: each that bindings name but
// system:masters.
func (b *builder) everyGroup() []string {
	groups := slices.DeleteFunc(b.subjectsOf("Group"), func(g string) bool { return g == masters })
	if !slices.Contains(groups, authenticated) {
		groups = append(groups, authenticated)
	}
	return groups
}

// expandEveryIdentity adds the users whose own rights may count together with those of groups.
func (b *builder) expandEveryIdentity(v vertex, accounts bool) {
	b.implies(v, b.fact(userWithGroups, ""))
	for _, user := range b.subjectsOf("User") {
		if _, _, isAccount := accountOfUser(user); (accounts || !isAccount) && b.countsWithGroups(user) {
			b.implies(v, b.fact(userWithGroups, user))
		}
	}
}

// countsWithGroups reports whether a user that is no node has rights that count together with others.
func (b *builder) countsWithGroups(user string) bool {
	subjects := b.subjects(user, anybody)
	return !strings.HasPrefix(user, nodeidentity.UserPrefix) &&
		len(b.rightsOfSubjects(subjects))+len(b.onRightsOfSubjects(subjects)) > 0
}

// impersonateTogether gives a user or service account that is impersonated with every group.
func (c *combiner) impersonateTogether(u, g held) {
	switch {
	case g.name != "":
	case u.right == impersonateServiceAccounts:
		c.pair(Impersonate, c.fact(userWithGroups, ""), "", u, g)
		for _, user := range c.subjectsOf("User") {
			namespace, name, isAccount := accountOfUser(user)
			if isAccount && u.covers(namespace, name) && c.countsWithGroups(user) {
				c.pair(Impersonate, c.fact(userWithGroups, user), "", u, g)
			}
		}
	case u.name == "":
		c.pair(Impersonate, c.fact(everyPlainIdentity, ""), "", u, g)
	default:
		c.pair(Impersonate, c.fact(userWithGroups, ""), "", u, g)
		if _, _, isAccount := accountOfUser(u.name); !isAccount && c.countsWithGroups(u.name) {
			c.pair(Impersonate, c.fact(userWithGroups, u.name), "", u, g)
		}
	}
}
