package cli

import (
	"cmp"
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
	// tokenNode is the node that the token of a service account is bound to.
	tokenNode string
	// pod is a pod, as NAMESPACE/NAME, whose token is asked about.
	pod string
}

func addIdentity(cmd *cobra.Command) *identityFlags {
	f := &identityFlags{}
	cmd.Flags().StringVar(&f.node, "node", "", "the node of the question")
	cmd.Flags().StringVar(
		&f.user, "as", "",
		"the user of the question, instead of a node (this does not impersonate: the connection's own user reads the cluster)",
	)
	cmd.Flags().StringArrayVar(&f.groups, "as-group", nil, "a group of that user; can be repeated")
	cmd.Flags().StringVar(
		&f.tokenNode, "token-node", "",
		"the node that the token of the service account of --as is bound to; NodeScopes and Quarantines decide by it",
	)
	cmd.Flags().StringVar(
		&f.pod, "pod", "",
		"ask about the token of this pod, NAMESPACE/NAME: its service account, bound to its node; instead of --as and --token-node",
	)
	return f
}

// check validates the flags before anything is read.
func (f *identityFlags) check() error {
	switch {
	case f.pod != "":
		return f.checkPod()
	case f.node == "" && f.user == "" && len(f.groups) > 0:
		return usagef("--as-group needs the user's name: add --as")
	case f.node == "" && f.user == "":
		return usagef("the user is missing: name a node with --node, a user with --as, or a pod with --pod")
	case f.node != "" && f.user != "":
		return usagef("--node and --as exclude each other")
	case f.node != "" && len(f.groups) > 0:
		return usagef("--as-group goes with --as: a node's groups are fixed")
	}
	if _, _, isAccount := nodeidentity.ServiceAccount(f.user); f.tokenNode != "" && !isAccount {
		return usagef("--token-node goes with the user of a service account: --as %sNAMESPACE:NAME", accountUser)
	}
	f.node, f.tokenNode = nodeName(f.node), nodeName(f.tokenNode)
	return nil
}

func (f *identityFlags) checkPod() error {
	if f.node != "" || f.user != "" || f.tokenNode != "" || len(f.groups) > 0 {
		return usagef("--pod stands for --as and --token-node: it excludes --node, --as, --as-group and --token-node")
	}
	if namespace, name, found := strings.Cut(f.pod, "/"); !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return usagef("--pod %q: want NAMESPACE/NAME", f.pod)
	}
	return nil
}

// identity is the user of the question.
type identity struct {
	// User is the username, and Groups are the groups with which the question was asked.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Node is the node's name; empty for users that are not nodes.
	Node string `json:"node,omitempty"`
	// TokenNode is the node that the token of a service account is bound to, and Pod the pod whose token it
	// is, as NAMESPACE/NAME; empty if the question names none.
	TokenNode string `json:"tokenNode,omitempty"`
	Pod       string `json:"pod,omitempty"`

	isNode bool `json:"-"`
}

// extra are the extra values that an API server gives to the user.
func (i identity) extra() map[string][]string {
	if i.TokenNode == "" {
		return nil
	}
	extra := map[string][]string{nodeidentity.ExtraNode: {i.TokenNode}}
	if _, name, found := strings.Cut(i.Pod, "/"); found {
		extra[nodeidentity.ExtraPod] = []string{name}
	}
	return extra
}

func newIdentity(user string, groups []string) identity {
	of := nodeidentity.Of(user, groups)
	return identity{User: user, Groups: groups, Node: of.Name, isNode: of.IsNode}
}

// identity resolves the flags against the state.
func (s *session) identity(f *identityFlags) (identity, error) {
	switch {
	case f.pod != "":
		return s.podIdentity(f.pod)
	case f.tokenNode != "":
		if err := s.requireNode(f.tokenNode, ""); err != nil {
			return identity{}, err
		}
		fallthrough
	case f.user != "":
		who := newIdentity(f.user, withImpliedGroups(f.user, f.groups))
		who.TokenNode = f.tokenNode
		return who, nil
	}
	if err := s.requireNode(f.node, fmt.Sprintf(
		"; to ask regardless, use --as %s --as-group %s", nodeidentity.UserPrefix+f.node, nodeidentity.Group,
	)); err != nil {
		return identity{}, err
	}
	return newIdentity(nodeidentity.User(f.node)), nil
}

// podIdentity is the user of the token that a kubelet gives to a pod.
func (s *session) podIdentity(of string) (identity, error) {
	namespace, name, _ := strings.Cut(of, "/")
	pod, found := s.State.Pod(namespace, name)
	if err := s.State.ReadErr(); err != nil {
		return identity{}, err
	}
	switch {
	case !found:
		return identity{}, fmt.Errorf("no pod %s in %s: name the account and the node with --as and --token-node", of, s.State.Origin)
	case pod.Spec.NodeName == "":
		return identity{}, fmt.Errorf("pod %s is not on a node yet, so that it has no token: name the node with --as and --token-node", of)
	}
	user := nodeidentity.ServiceAccountUser(namespace, cmp.Or(pod.Spec.ServiceAccountName, "default"))
	who := newIdentity(user, withImpliedGroups(user, nil))
	who.TokenNode, who.Pod = pod.Spec.NodeName, of
	return who, nil
}

// withImpliedGroups adds the groups that an API server adds to an impersonated user: the groups
// of a service account unless groups are given, and system:authenticated.
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
	if i.TokenNode != "" {
		return "user " + i.User + " with a token of node " + i.TokenNode
	}
	return "user " + i.User
}
