package iam

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// checkNames checks the resolved names of a caller.
func (a *Authenticator) checkNames(username string, groups []string, who *principal) *Refusal {
	if refusal := checkName("username", username, who); refusal != nil {
		return refusal
	}
	if node, ok := strings.CutPrefix(username, nodeidentity.UserPrefix); ok {
		if refusal := checkNodeName(node, who); refusal != nil {
			return refusal
		}
	}
	if err := a.options.Reserved.Username(username); err != nil {
		return Refuse(NameReserved, "%s: %v", who.ARN, err)
	}
	for _, group := range groups {
		if refusal := checkName("group", group, who); refusal != nil {
			return refusal
		}
		if err := a.options.Reserved.Group(group); err != nil {
			return Refuse(NameReserved, "%s: %v", who.ARN, err)
		}
	}
	return nil
}

// checkName rejects names with invisible or misleading characters.
func checkName(what, name string, who *principal) *Refusal {
	if name == "" {
		return Refuse(NameEmpty, "%s: its mapping gives an empty %s", who.ARN, what)
	}
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(name) || strings.IndexFunc(name, odd) >= 0 {
		return Refuse(NameInvalid, "%s: its mapping gives the %s %q, with characters that are not printable", who.ARN, what, name)
	}
	return nil
}

// checkNodeName accepts valid names of Nodes, except those with which a node could
// impersonate a service of the cluster.
func checkNodeName(name string, who *principal) *Refusal {
	switch {
	case name == "":
		return Refuse(NameEmpty, "%s: its mapping gives the username %s without a node name", who.ARN, nodeidentity.UserPrefix)
	case !isNodeName(name):
		return Refuse(NameInvalid, "%s: its mapping gives the node name %q, which is not a valid name of a Node", who.ARN, name)
	case nodeidentity.Reserved(name):
		return Refuse(NameReserved, "%s: its mapping gives the node name %q, which is the name of a service or of the local host", who.ARN,
			name)
	}
	return nil
}

// isNodeName reports whether a text is a valid name of a Node: a DNS subdomain.
//
// Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
func isNodeName(name string) bool {
	const longest = 253
	odd := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || strings.IndexFunc(label, odd) >= 0 {
			return false
		}
	}
	return len(name) <= longest
}
