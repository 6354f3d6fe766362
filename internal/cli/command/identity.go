package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// IdentityFlags identify the user of the question.
type IdentityFlags struct {
	Node   string
	User   string
	Groups []string
	uid    string
	// tokenNode is the node that the token of a service account is bound to.
	tokenNode string
	// pod is a pod, as NAMESPACE/NAME, whose token is asked about.
	pod string
}

func AddIdentity(cmd *cobra.Command) *IdentityFlags {
	f := &IdentityFlags{}
	cmd.Flags().StringVar(&f.Node, "node", "", "the node of the question")
	cmd.Flags().StringVar(
		&f.User, "as", "",
		"the user of the question, instead of a node (this does not impersonate: the connection's own user reads the cluster)",
	)
	cmd.Flags().StringArrayVar(&f.Groups, "as-group", nil, "a group of that user; can be repeated")
	cmd.Flags().StringVar(&f.uid, "as-uid", "", "the UID of that user, which webhooks and match conditions see")
	CompleteNothing(cmd, "as-uid")
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

// Check validates the flags before anything is read.
func (f *IdentityFlags) Check() error {
	if err := CheckGroups("--as-group", f.Groups); err != nil {
		return err
	}
	switch {
	case f.pod != "" && (f.Node != "" || f.User != "" || f.uid != "" || f.tokenNode != "" || len(f.Groups) > 0):
		return Usagef("--pod stands for --as and --token-node: it excludes --node, --as, --as-group, --as-uid and --token-node")
	case f.pod != "":
		if namespace, name, found := strings.Cut(f.pod, "/"); !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return Usagef("--pod %q: want NAMESPACE/NAME", f.pod)
		}
		return nil
	case f.Node == "" && f.User == "" && len(f.Groups) > 0:
		return Usagef("--as-group needs the user's name: add --as")
	case f.User == "" && f.uid != "":
		return Usagef("--as-uid needs the user's name: add --as")
	case f.Node == "" && f.User == "":
		return Usagef("the user is missing: name a node with --node, a user with --as, or a pod with --pod")
	case f.Node != "" && f.User != "":
		return Usagef("--node and --as exclude each other")
	case f.Node != "" && len(f.Groups) > 0:
		return Usagef("--as-group goes with --as: a node's groups are fixed")
	}
	if _, _, isAccount := nodeidentity.ServiceAccount(f.User); f.tokenNode != "" && !isAccount {
		return Usagef("--token-node goes with the user of a service account: --as %sNAMESPACE:NAME", AccountUser)
	}
	f.Node, f.tokenNode = NodeName(f.Node), NodeName(f.tokenNode)
	return nil
}

// CheckGroups refuses groups that no authenticator gives to a user.
func CheckGroups(flag string, groups []string) error {
	for _, g := range groups {
		if g == "" || strings.ContainsFunc(g, unicode.IsControl) {
			return Usagef("%s %q: the name of a group is not empty and has no line breaks", flag, g)
		}
	}
	return nil
}

// Identity is the user of the question.
type Identity struct {
	// User is the username, and Groups are the groups with which the question was asked.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// UID is the user's UID; empty if the question names none.
	UID string `json:"uid,omitempty"`
	// Node is the node's name; empty for users that are not nodes.
	Node string `json:"node,omitempty"`
	// TokenNode is the node that the token of a service account is bound to, and Pod the pod whose token it
	// is, as NAMESPACE/NAME; empty if the question names none.
	TokenNode string `json:"tokenNode,omitempty"`
	Pod       string `json:"pod,omitempty"`

	IsNode bool `json:"-"`
}

// extra are the extra values that an API server gives to the user.
func (i Identity) extra() map[string][]string {
	if i.TokenNode == "" {
		return nil
	}
	extra := map[string][]string{nodeidentity.ExtraNode: {i.TokenNode}}
	if _, name, found := strings.Cut(i.Pod, "/"); found {
		extra[nodeidentity.ExtraPod] = []string{name}
	}
	return extra
}

// NewIdentity returns the identity of a user with groups; of a node, if it is one.
func NewIdentity(user string, groups []string) Identity {
	of := nodeidentity.Of(user, groups)
	return Identity{User: user, Groups: groups, Node: of.Name, IsNode: of.IsNode}
}

// Identity resolves the flags against the state.
func (s *Session) Identity(f *IdentityFlags) (Identity, error) {
	switch {
	case f.pod != "":
		return s.podIdentity(f.pod)
	case f.tokenNode != "":
		if err := s.RequireNode(f.tokenNode, ""); err != nil {
			return Identity{}, err
		}
		fallthrough
	case f.User != "":
		who := NewIdentity(f.User, WithImpliedGroups(f.User, f.Groups))
		who.TokenNode, who.UID = f.tokenNode, f.uid
		return who, nil
	}
	if err := s.RequireNode(f.Node, fmt.Sprintf(
		"; to ask regardless, use --as %s --as-group %s", nodeidentity.UserPrefix+f.Node, nodeidentity.Group,
	)); err != nil {
		return Identity{}, err
	}
	return NewIdentity(nodeidentity.User(f.Node)), nil
}

// podIdentity is the user of the token that a kubelet gives to a pod.
func (s *Session) podIdentity(of string) (Identity, error) {
	namespace, name, _ := strings.Cut(of, "/")
	pod, found := s.State.Pod(namespace, name)
	if err := s.State.ReadErr(); err != nil {
		return Identity{}, err
	}
	switch {
	case !found:
		return Identity{}, fmt.Errorf("no pod %s in %s: name the account and the node with --as and --token-node", of, s.State.Origin)
	case pod.Spec.NodeName == "":
		return Identity{}, fmt.Errorf("pod %s is not on a node yet, so that it has no token: name the node with --as and --token-node", of)
	}
	user := nodeidentity.ServiceAccountUser(namespace, cmp.Or(pod.Spec.ServiceAccountName, "default"))
	who := NewIdentity(user, WithImpliedGroups(user, nil))
	who.TokenNode, who.Pod = pod.Spec.NodeName, of
	return who, nil
}

// WithImpliedGroups adds the groups that an API server adds to an impersonated user: the groups
// of a service account unless groups are given, and system:authenticated.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
func WithImpliedGroups(user string, groups []string) []string {
	const (
		authenticated   = "system:authenticated"
		unauthenticated = "system:unauthenticated"
		anonymous       = "system:anonymous"
	)
	all := slices.Clone(groups)
	if rest, ok := strings.CutPrefix(user, AccountUser); ok && len(groups) == 0 {
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

// Kind describes the identity: "node worker-1", "user alice".
func (i Identity) Kind() string {
	switch {
	case i.Node != "":
		return "node " + i.Node
	case i.IsNode:
		return "a node that cannot be named"
	}
	if i.TokenNode != "" {
		return "user " + i.User + " with a token of node " + i.TokenNode
	}
	return "user " + i.User
}

// NodeName returns the name of a node that a person wrote as node/NAME, as the node's user, or in
// another case. Names of nodes are in lower case and have no slash or colon.
func NodeName(text string) string {
	name := strings.ToLower(text)
	for _, prefix := range []string{"node/", "nodes/", "no/", nodeidentity.UserPrefix} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// holding is a kind of holdings with the words for it. Names are completed if it has a resource. A path can begin at a start.
type holding struct {
	word, kind, resource, short string
	namespaced, start           bool
}

var holdings = []holding{
	{"node", attackpaths.Node, "nodes", "no", false, true},
	{"pod", attackpaths.Pod, "pods", "po", true, true},
	{"serviceaccount", attackpaths.ServiceAccount, "serviceaccounts", "sa", true, true},
	{"secret", attackpaths.Secret, "secrets", "", true, false},
	{"namespace", attackpaths.Namespace, "namespaces", "ns", false, false},
	{"user", attackpaths.User, "", "", false, false},
	{"group", attackpaths.Group, "", "", false, false},
}

// ParseHolding reads KIND/NAME or KIND/NAMESPACE/NAME.
func ParseHolding(text, namespace string) (attackpaths.Holding, error) {
	word, name, ok := strings.Cut(text, "/")
	at := holdingAt(word)
	if !ok || name == "" || at < 0 {
		var words []string
		for _, h := range holdings {
			words = append(words, h.word)
		}
		near := ""
		if at < 0 {
			near = DidYouMean(word, words)
		}
		return attackpaths.Holding{}, Usagef("%q is not KIND/NAME with KIND %s%s", text, render.Join(words, "or"), near)
	}
	of := holdings[at]
	switch {
	case of.namespaced:
		if inner, rest, ok := strings.Cut(name, "/"); ok {
			namespace, name = inner, rest
		}
		return attackpaths.Holding{Kind: of.kind, Namespace: namespace, Name: name}, nil
	case of.kind == attackpaths.Node:
		name = NodeName(name)
	}
	return attackpaths.Holding{Kind: of.kind, Name: name}, nil
}

// holdingAt is the place of a word in the table; -1 if it has none.
func holdingAt(word string) int {
	word = strings.ToLower(word)
	return slices.IndexFunc(holdings, func(h holding) bool {
		return word != "" && slices.Contains([]string{h.word, h.resource, h.short}, word)
	})
}
