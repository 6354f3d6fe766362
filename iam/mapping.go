package iam

import "github.com/node-authorizer/node-authorizer/finding"

// MappingKind says what a mapping is about.
type MappingKind string

// The kinds of mappings, in the order in which those of one source are tried.
const (
	RoleMapping    MappingKind = "role"
	UserMapping    MappingKind = "user"
	AccountMapping MappingKind = "account"
)

// Mapping says who a caller of AWS is in Kubernetes.
type Mapping struct {
	Kind MappingKind
	// ARN is that of the role or user as it is written; empty for an account.
	ARN string
	// Account is set for an account: all its callers are users of the name of their
	// canonical ARN, in no group.
	Account string
	// Username and Groups may have templates.
	Username string
	Groups   []string
	// Source is the name of the source: "ConfigMap kube-system/aws-auth".
	Source string
	// Place is where it is written.
	Place finding.Place
	// Unusable is set for an entry that cannot be used, and whose ARN can be read. It
	// maps nobody: its caller is refused, whatever other entries say. Username and
	// Groups are empty.
	Unusable bool
}
