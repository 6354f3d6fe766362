// Package scopecel writes parts of CEL expressions about the accounts of NodeScopes.
package scopecel

import (
	"fmt"
	"strings"
)

// AccountPrefix is the prefix of the user names of service accounts.
const AccountPrefix = "system:serviceaccount:"

// List writes strings as a list of CEL.
func List(all []string) string {
	quoted := make([]string, len(all))
	for i, text := range all {
		quoted[i] = Literal(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Literal writes a string of CEL. It is ASCII, whatever the text.
func Literal(text string) string {
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

// InNamespaces is true for the users of service accounts in namespaces.
func InNamespaces(user string, namespaces []string) string {
	return fmt.Sprintf("%s.startsWith('%s') && %s.split(':')[2] in %s", user, AccountPrefix, user, List(namespaces))
}

// Accounts is true for users, and for the service accounts in namespaces. One of both is not empty.
func Accounts(user string, users, namespaces []string) string {
	switch {
	case len(namespaces) == 0:
		return fmt.Sprintf("%s in %s", user, List(users))
	case len(users) == 0:
		return InNamespaces(user, namespaces)
	}
	return fmt.Sprintf("%s in %s || (%s)", user, List(users), InNamespaces(user, namespaces))
}
