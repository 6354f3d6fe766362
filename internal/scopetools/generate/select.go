package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
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
