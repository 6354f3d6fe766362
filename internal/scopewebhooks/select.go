package scopewebhooks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	accountPrefix = "system:serviceaccount:"
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

// variables are the names of the user's attributes in an expression.
type variables struct{ user, groups, extra, guard string }

// selector makes the expressions of the accounts of some scopes.
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
	case len(list(s.users))+len(list(s.namespaces)) <= maxExpression:
		return ByAccount
	case len(list(s.every)) <= maxExpression:
		return ByNamespace
	}
	return AllAccounts
}

// expression is true for the users of the accounts, and false for users that are not service
// accounts.
func (s selector) expression(user string) string {
	prefix := fmt.Sprintf("%s.startsWith('%s')", user, accountPrefix)
	inNamespaces := func(namespaces []string) string {
		return fmt.Sprintf("%s && %s.split(':')[2] in %s", prefix, user, list(namespaces))
	}
	switch s.selection() {
	case ByNamespace:
		return inNamespaces(s.every)
	case AllAccounts:
		return prefix
	}
	switch {
	case len(s.namespaces) == 0:
		return fmt.Sprintf("%s in %s", user, list(s.users))
	case len(s.users) == 0:
		return inNamespaces(s.namespaces)
	}
	return fmt.Sprintf("%s in %s || (%s)", user, list(s.users), inNamespaces(s.namespaces))
}

// list writes strings as a list of CEL.
func list(all []string) string {
	quoted := make([]string, len(all))
	for i, text := range all {
		quoted[i] = literal(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// literal writes a string of CEL.
func literal(text string) string {
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

// conditions are the match conditions of both webhooks, all of which must be true.
func (o *Options) conditions(v variables) []condition {
	s := newSelector(o.Scopes)
	concerned := s.expression(v.user)
	name := "scoped-accounts"
	if o.Quarantines {
		name = "nodes-and-their-tokens"
		alternatives := []string{
			fmt.Sprintf("%s.startsWith('%s')", v.user, nodeidentity.UserPrefix),
			fmt.Sprintf("%s%s in %s", v.guard, literal(nodeidentity.ExtraNode), v.extra),
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
		all = append(all, condition{"not-the-server-itself", fmt.Sprintf("!(%s in %s)", v.user, list(slices.Compact(users)))})
	}
	return all
}

type condition struct{ name, expression string }
