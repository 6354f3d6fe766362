package iam

import (
	"fmt"
	"strings"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Quarantines finds the Quarantine that cuts off a node. It is safe for concurrent use.
type Quarantines interface {
	// Quarantined returns the name of the Quarantine of a node. An error means that the
	// quarantines have not been read yet, or are too old.
	Quarantined(node string) (name string, found bool, err error)
}

// checkQuarantine refuses a username that is a quarantined node's, in any groups.
func (a *Authenticator) checkQuarantine(who *principal, username string) error {
	node, ok := strings.CutPrefix(username, nodeidentity.UserPrefix)
	if !ok || a.options.Quarantines == nil {
		return nil
	}
	name, found, err := a.options.Quarantines.Quarantined(node)
	if err != nil {
		return fmt.Errorf("look for a quarantine of node %s: %w", node, err)
	}
	if found {
		return Refuse(policyv1alpha1.NodeQuarantined, "%s would be node %s, which Quarantine %s cuts off", who.ARN, node, name)
	}
	return nil
}
