package command

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// NodeName returns the name of a node that a person wrote as node/NAME, as the node's user, or in
// another case. Names of nodes are in lower case and have no slash or colon.
func NodeName(text string) string {
	name := strings.ToLower(text)
	for _, prefix := range []string{"node/", "nodes/", "no/", nodeidentity.UserPrefix} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}
