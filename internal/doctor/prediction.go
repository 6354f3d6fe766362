package doctor

import "github.com/node-authorizer/node-authorizer/finding"

// Value is whether something will work.
type Value string

// The values of an outcome.
const (
	Yes     Value = "yes"
	No      Value = "no"
	Unknown Value = "unknown"
)

// Outcome is whether something will work for a node, and why.
type Outcome struct {
	Value Value `json:"value"`
	// Why is one line for people.
	Why string `json:"why"`
}

// doubt is why an outcome is not known; empty if it is.
func (o Outcome) doubt() string {
	if o.Value != Unknown {
		return ""
	}
	return o.Why
}

// RolePrediction is what will happen to a node that uses an AWS role, as it is mapped.
type RolePrediction struct {
	// Purpose is what the role is for, as far as that shows.
	Purpose  Purpose  `json:"purpose"`
	ARN      string   `json:"arn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	// Source is the name of the source that has the mapping, and Place where in it.
	Source string        `json:"source"`
	Place  finding.Place `json:"place"`
	// Node is the node that the prediction is for: one of the cluster's, or, if it is not
	// Seen, one as AWS would make it.
	Node string `json:"node"`
	Seen bool   `json:"seen"`
	// User is what that node's kubelet is called; empty if it gets no name at all.
	User string `json:"user,omitempty"`
	// Registers is whether its kubelet can create its Node, Ready whether it can keep
	// the node's status and Lease, and Serving whether its serving certificate will be
	// approved, so that logs, exec and port-forward work.
	Registers Outcome `json:"registers"`
	Ready     Outcome `json:"ready"`
	Serving   Outcome `json:"serving"`
	// NodeIdentity is whether the Node authorizer and NodeRestriction know the user as
	// that node.
	NodeIdentity bool `json:"nodeIdentity"`
	// ClusterAdmin is whether the user may do everything.
	ClusterAdmin bool `json:"clusterAdmin"`
	// Authenticator is the program that the outcomes are of: how it takes the entry.
	Authenticator string `json:"authenticator"`
	// NodeAuthorizer is set where node-authorizer as the authenticator refuses the role's
	// nodes, because of an entry that cannot be used: No, or Unknown where that depends on
	// the order of sources.
	NodeAuthorizer Outcome `json:"nodeAuthorizer,omitzero"`
}

// Works is whether everything works for the node, as that node.
func (f *RolePrediction) Works() bool {
	return f.Registers.Value == Yes && f.Ready.Value == Yes && f.Serving.Value == Yes
}
