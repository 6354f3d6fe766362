package bootstrap

import (
	"fmt"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// Quarantines finds the Quarantine that cuts off a node. It is safe for concurrent use.
type Quarantines interface {
	// Quarantined returns the name of the Quarantine of a node. An error means that the
	// quarantines have not been read yet, or are too old.
	Quarantined(node string) (name string, found bool, err error)
}

// checkQuarantine refuses the machine of a quarantined node. A machine that is attested under
// another name than before is still the machine of that node.
func (r *redemption) checkQuarantine() error {
	if r.options.Quarantines == nil {
		return nil
	}
	nodes := []string{r.id.NodeName}
	if entry, ok := r.options.Known.Get(r.name); ok && entry.Spec.NodeName != r.id.NodeName {
		nodes = append(nodes, entry.Spec.NodeName)
	}
	for _, node := range nodes {
		name, found, err := r.options.Quarantines.Quarantined(node)
		if err != nil {
			return fmt.Errorf("look for a quarantine of node %s: %w", node, err)
		}
		if found {
			return attest.Refuse(policyv1alpha1.NodeQuarantined, "%s asks for a token, and Quarantine %s cuts off node %s",
				r.id.InstanceID, name, node)
		}
	}
	return nil
}
