package generate

import (
	"fmt"
	"strings"
)

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
