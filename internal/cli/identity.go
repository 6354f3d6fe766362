package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// identityFlags identify the user of the question.
type identityFlags struct {
	node   string
	user   string
	groups []string
}

func addIdentity(cmd *cobra.Command) *identityFlags {
	f := &identityFlags{}
	cmd.Flags().StringVar(&f.node, "node", "", "the node of the question")
	cmd.Flags().StringVar(
		&f.user, "as", "",
		"the user of the question, instead of a node (this does not impersonate: the connection's own user reads the cluster)",
	)
	cmd.Flags().StringArrayVar(&f.groups, "as-group", nil, "a group of that user; can be repeated")
	return f
}

// check validates the flags before anything is read.
func (f *identityFlags) check() error {
	switch {
	case f.node == "" && f.user == "" && len(f.groups) > 0:
		return usagef("--as-group needs the user's name: add --as")
	case f.node == "" && f.user == "":
		return usagef("the user is missing: name a node with --node, or a user with --as")
	case f.node != "" && f.user != "":
		return usagef("--node and --as exclude each other")
	case f.node != "" && len(f.groups) > 0:
		return usagef("--as-group goes with --as: a node's groups are fixed")
	}
	f.node = nodeName(f.node)
	return nil
}

// identity is the user of the question.
type identity struct {
	// User is the username, and Groups are the groups with which the question was asked.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Node is the node's name; empty for users that are not nodes.
	Node string `json:"node,omitempty"`

	isNode bool
}

func newIdentity(user string, groups []string) identity {
	of := nodeidentity.Of(user, groups)
	return identity{User: user, Groups: groups, Node: of.Name, isNode: of.IsNode}
}

// identity resolves the flags against the state.
func (s *session) identity(f *identityFlags) (identity, error) {
	if f.user != "" {
		return newIdentity(f.user, withImpliedGroups(f.user, f.groups)), nil
	}
	if err := s.requireNode(f.node, fmt.Sprintf(
		"; to ask regardless, use --as %s --as-group %s", nodeidentity.UserPrefix+f.node, nodeidentity.Group,
	)); err != nil {
		return identity{}, err
	}
	return newIdentity(nodeidentity.User(f.node)), nil
}

// withImpliedGroups adds the groups that an API server adds to an impersonated user: those of
// a service account unless groups are given, and system:authenticated.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
func withImpliedGroups(user string, groups []string) []string {
	const (
		authenticated   = "system:authenticated"
		unauthenticated = "system:unauthenticated"
		anonymous       = "system:anonymous"
	)
	all := slices.Clone(groups)
	if rest, ok := strings.CutPrefix(user, accountUser); ok && len(groups) == 0 {
		namespace, _, _ := strings.Cut(rest, ":")
		all = append(all, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	implied := authenticated
	if user == anonymous {
		implied = unauthenticated
	}
	if !slices.Contains(all, authenticated) && !slices.Contains(all, unauthenticated) {
		all = append(all, implied)
	}
	return all
}

// kind describes the identity: "node worker-1", "user alice".
func (i identity) kind() string {
	switch {
	case i.Node != "":
		return "node " + i.Node
	case i.isNode:
		return "a node that cannot be named"
	}
	return "user " + i.User
}
