package v1alpha1

import (
	"strconv"
	"strings"
)

// Containment has the settings of the custom resources NodeScope and Quarantine
// (policy.node-authorizer.io), which limit what credentials on a node may do.
type Containment struct {
	// NodeScopes is whether /authorize and /admit apply NodeScopes.
	NodeScopes Switch `json:"nodeScopes"`
	// Quarantines is whether everything that the server does applies Quarantines.
	Quarantines Switch `json:"quarantines"`
	// MaxQuarantinedNodes is how many nodes can be quarantined at the same time. The oldest
	// quarantines count; quarantines beyond the limit are not accepted.
	MaxQuarantinedNodes NodeLimit `json:"maxQuarantinedNodes"`
}

// Switch enables a part of the server.
type Switch string

// The values of a switch.
const (
	Disabled Switch = "Disabled"
	Enabled  Switch = "Enabled"
)

// Enabled reports whether the server follows one of the resources, for which it reads the cluster.
func (c Containment) Enabled() bool { return c.NodeScopes == Enabled || c.Quarantines == Enabled }

// NodeLimit is a number of nodes, "3", or a percentage of all nodes, "10%".
type NodeLimit string

// Of returns the number for a cluster with so many nodes. A percentage is rounded down. The
// least is 1.
func (l NodeLimit) Of(nodes int) int {
	percentage, isShare := strings.CutSuffix(string(l), "%")
	number, err := strconv.Atoi(percentage)
	if err != nil {
		return 1
	}
	if isShare {
		number = int(int64(nodes) * int64(number) / 100)
	}
	return max(number, 1)
}
