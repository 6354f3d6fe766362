package generate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	// maxExpression is the largest size of a list in a match condition, in bytes. The parser of CEL
	// refuses expressions of more than 100,000 characters.
	maxExpression = 60_000
)

// Selection is how a match condition selects the accounts of scopes.
type Selection string

// The selections, the most exact first.
const (
	ByAccount   Selection = "account"
	ByNamespace Selection = "namespace"
	AllAccounts Selection = "all service accounts"
)

// userFields are the names of the user's attributes in an expression.
type userFields struct{ user, groups, extra, guard string }

type selector struct {
	users      []string // of single accounts, sorted
	namespaces []string // all accounts of which are concerned, sorted
	every      []string // the namespaces of all subjects, sorted
}

func newSelector(scopes []*v1alpha1.NodeScope) selector {
	var s selector
	for _, scope := range scopes {
		for _, subject := range scope.Spec.Subjects {
			s.every = append(s.every, subject.Namespace)
			if subject.Name == "" {
				s.namespaces = append(s.namespaces, subject.Namespace)
				continue
			}
			s.users = append(s.users, nodeidentity.ServiceAccountUser(subject.Namespace, subject.Name))
		}
	}
	for _, list := range []*[]string{&s.users, &s.namespaces, &s.every} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	s.users = slices.DeleteFunc(s.users, func(user string) bool {
		namespace, _, _ := nodeidentity.ServiceAccount(user)
		return slices.Contains(s.namespaces, namespace)
	})
	return s
}

// selection is the most exact one that the limits allow.
func (s selector) selection() Selection {
	switch {
	case len(celList(s.users))+len(celList(s.namespaces)) <= maxExpression:
		return ByAccount
	case len(celList(s.every)) <= maxExpression:
		return ByNamespace
	}
	return AllAccounts
}

// expression is true for the users of the accounts, and false for users that are not service
// accounts.
func (s selector) expression(user string) string {
	switch s.selection() {
	case ByNamespace:
		return inNamespaces(user, s.every)
	case AllAccounts:
		return fmt.Sprintf("%s.startsWith('%s')", user, accountPrefix)
	}
	return celAccounts(user, s.users, s.namespaces)
}

// conditions are the match conditions of both webhooks, all of which must be true.
func (o *Options) conditions(v userFields) []condition {
	s := newSelector(o.Scopes)
	concerned := s.expression(v.user)
	name := "scoped-accounts"
	if o.Quarantines {
		name = "nodes-and-their-tokens"
		alternatives := []string{
			fmt.Sprintf("%s.startsWith('%s')", v.user, nodeidentity.UserPrefix),
			fmt.Sprintf("%s%s in %s", v.guard, celLiteral(nodeidentity.ExtraNode), v.extra),
		}
		if len(o.Scopes) > 0 {
			alternatives = append(alternatives, concerned)
		}
		for i, a := range alternatives {
			alternatives[i] = "(" + a + ")"
		}
		concerned = strings.Join(alternatives, " || ")
	}
	all := []condition{{name, concerned}}
	if len(o.ServerUsers) > 0 {
		users := slices.Clone(o.ServerUsers)
		slices.Sort(users)
		all = append(all, condition{"not-the-server-itself", fmt.Sprintf("!(%s in %s)", v.user, celList(slices.Compact(users)))})
	}
	return all
}

type condition struct{ name, expression string }

// accountPrefix is the prefix of the user names of service accounts.
const accountPrefix = "system:serviceaccount:"

func celList(all []string) string {
	quoted := make([]string, len(all))
	for i, text := range all {
		quoted[i] = celLiteral(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celLiteral writes any text as a string of CEL, in ASCII.
func celLiteral(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r > '~':
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// inNamespaces is true for the users of service accounts in namespaces.
func inNamespaces(user string, namespaces []string) string {
	return fmt.Sprintf("%s.startsWith('%s') && %s.split(':')[2] in %s", user, accountPrefix, user, celList(namespaces))
}

// celAccounts is true for users, and for the service accounts in namespaces. One of both is not empty.
func celAccounts(user string, users, namespaces []string) string {
	switch {
	case len(namespaces) == 0:
		return fmt.Sprintf("%s in %s", user, celList(users))
	case len(users) == 0:
		return inNamespaces(user, namespaces)
	}
	return fmt.Sprintf("%s in %s || (%s)", user, celList(users), inNamespaces(user, namespaces))
}

// FailurePolicy is the decision of an API server about requests for which the server does not answer.
type FailurePolicy string

// The failure policies, as an AuthorizationConfiguration names them.
const (
	// Deny refuses them.
	Deny FailurePolicy = "Deny"
	// NoOpinion lets the authorizers after the webhook decide.
	NoOpinion FailurePolicy = "NoOpinion"
)

// Options are what a configuration is made for.
type Options struct {
	// Scopes are the NodeScopes at hand, sorted.
	Scopes []*v1alpha1.NodeScope
	// Quarantines sends the requests of all nodes, and of all tokens that are bound to a node.
	Quarantines bool
	// ServerUsers are the users of the server itself. They are never sent: the server could not
	// start while it has to answer about its own requests.
	ServerUsers []string
	// FailurePolicy is Deny or NoOpinion. [Options.DefaultFailurePolicy] is the one that fits.
	FailurePolicy FailurePolicy
	// Minor is the Kubernetes version of the API server; 0 if it is not known, so that only what
	// all versions since 1.32 know is used.
	Minor kubeversion.Minor
	// Kubeconfig is the path, on the API server's machine, of the kubeconfig with the address of
	// the server's /authorize.
	Kubeconfig string
	// URL is the address of the server's /admit.
	URL string
}

// ErrNothingToSend means that there are neither scopes nor quarantines.
var ErrNothingToSend = errors.New("no NodeScopes, and no quarantines: the API server would have nothing to ask; " +
	"name manifests of scopes with -f, or add --quarantines")

func (o *Options) check() error {
	if len(o.Scopes) == 0 && !o.Quarantines {
		return ErrNothingToSend
	}
	return nil
}

// Selection says how exactly the accounts of the scopes are selected.
func (o *Options) Selection() Selection { return newSelector(o.Scopes).selection() }

// DefaultFailurePolicy is the failure policy with which an outage changes no more than the scopes do:
// NoOpinion while nothing refuses, and Deny as soon as one scope enforces, or with quarantines.
func (o *Options) DefaultFailurePolicy() FailurePolicy {
	if o.OnlyObserves() {
		return NoOpinion
	}
	return Deny
}

// OnlyObserves reports whether no scope refuses anything.
func (o *Options) OnlyObserves() bool {
	for _, s := range o.Scopes {
		if s.Spec.Mode != v1alpha1.Observe {
			return false
		}
	}
	return !o.Quarantines
}
