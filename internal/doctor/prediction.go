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
	// Value says whether it will work.
	Value Value `json:"value"`
	// Why is the reason in one line.
	Why string `json:"why"`
}

// doubt returns why an outcome is unknown; empty if it is known.
func (o Outcome) doubt() string {
	if o.Value != Unknown {
		return ""
	}
	return o.Why
}

// RolePrediction predicts what happens to a node that uses a mapped AWS role.
type RolePrediction struct {
	// Purpose is the purpose of the role, as far as it is known.
	Purpose Purpose `json:"purpose"`
	// ARN is the mapped AWS principal, and Username and Groups are what the mapping gives, with its
	// templates.
	ARN      string   `json:"arn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	// Source is the name of the mapping's source, and Place its place there.
	Source string        `json:"source"`
	Place  finding.Place `json:"place"`
	// Node is the node of the prediction: a node of the cluster if Seen is true, and otherwise a
	// typical AWS node.
	Node string `json:"node"`
	Seen bool   `json:"seen"`
	// User is the username of that node's kubelet; empty if authentication fails.
	User string `json:"user,omitempty"`
	// Registers is whether its kubelet can create its Node object, Ready whether it can keep
	// the node's status and Lease, and Serving whether its serving certificate will be
	// approved, so that logs, exec and port-forward work.
	Registers Outcome `json:"registers"`
	Ready     Outcome `json:"ready"`
	Serving   Outcome `json:"serving"`
	// NodeIdentity is true if the Node authorizer and NodeRestriction recognize the user as that
	// node.
	NodeIdentity bool `json:"nodeIdentity"`
	// ClusterAdmin is whether the user may do everything.
	ClusterAdmin bool `json:"clusterAdmin"`
	// Authenticator is the program whose interpretation of the entry is predicted.
	Authenticator string `json:"authenticator"`
	// NodeAuthorizer is set if node-authorizer as the authenticator would refuse the role's nodes
	// because of an unusable entry: [No], or [Unknown] if that depends on the order of sources.
	NodeAuthorizer Outcome `json:"nodeAuthorizer,omitzero"`
}

// Works reports whether everything works for the node, and it authenticates as that node.
func (f *RolePrediction) Works() bool {
	return f.Registers.Value == Yes && f.Ready.Value == Yes && f.Serving.Value == Yes
}
