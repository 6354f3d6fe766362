package iam

import "github.com/node-authorizer/node-authorizer/internal/finding"

// MappingKind is the kind of callers that a mapping applies to.
type MappingKind string

// The kinds of mappings. The mappings of one source are tried in this order.
const (
	RoleMapping    MappingKind = "role"
	UserMapping    MappingKind = "user"
	AccountMapping MappingKind = "account"
)

// Mapping maps a caller of AWS to a Kubernetes user.
type Mapping struct {
	Kind MappingKind
	// ARN is the ARN of the role or user as it is written. It is empty for an account.
	ARN string
	// Account is set for an account: each of its callers is a user named after its
	// canonical ARN, in no group.
	Account string
	// Username and Groups may have templates.
	Username string
	Groups   []string
	// Source is the name of the source: "ConfigMap kube-system/aws-auth".
	Source string
	// Place is where the mapping is written.
	Place finding.Place
	// Unusable is set for an entry that cannot be used, but whose ARN can be read. Its
	// caller is refused, regardless of other entries. Username and Groups are empty.
	Unusable bool
}
