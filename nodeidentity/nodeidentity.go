// Package nodeidentity maps users to nodes: [Of] returns the node of a user name and
// groups, [User] is the inverse.
//
// A node's user name is "system:node:<name>" and its groups contain "system:nodes";
// both are required. The name after the prefix is the node's name, compared exactly.
// A user with the prefix and the group but an empty node name is a node that cannot
// be named.
//
// [TokenNode] and [ServiceAccount] do the same for service accounts whose tokens are bound to a
// pod: they return the node and the account.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/
package nodeidentity

import "strings"

const (
	// UserPrefix is the prefix of every node's user name.
	UserPrefix = "system:node:"
	// Group is the group that every node is in.
	Group = "system:nodes"
)

// Identity is the result of Of.
type Identity struct {
	// IsNode is true for users with the prefix and the group.
	IsNode bool
	// Name is the node's name; empty for a node that cannot be named.
	Name string
}

// Of returns the identity of a user name and its groups.
func Of(user string, groups []string) Identity {
	if !strings.HasPrefix(user, UserPrefix) {
		return Identity{}
	}
	for _, g := range groups {
		if g == Group {
			return Identity{IsNode: true, Name: user[len(UserPrefix):]}
		}
	}
	return Identity{}
}

// User returns the user name and groups of the named node's kubelet at an API server,
// including the group of all authenticated users.
func User(node string) (user string, groups []string) {
	return UserPrefix + node, []string{Group, "system:authenticated"}
}
