package nodeauthz

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of the Node authorizer's answers. See docs/reference/reasons.
const (
	// Allowed.
	PathToObject     verdict.Code = "PathToObject"
	OwnName          verdict.Code = "OwnName"
	OwnFieldSelector verdict.Code = "OwnFieldSelector"
	GrantedToNodes   verdict.Code = "GrantedToNodes"

	// No opinion.
	NotANode              verdict.Code = "NotANode"
	UnnamedNode           verdict.Code = "UnnamedNode"
	NoRuleForResource     verdict.Code = "NoRuleForResource"
	SubresourceNotAllowed verdict.Code = "SubresourceNotAllowed"
	VerbNotAllowed        verdict.Code = "VerbNotAllowed"
	FeatureDisabled       verdict.Code = "FeatureDisabled"
	NamespaceRequired     verdict.Code = "NamespaceRequired"
	ClusterScoped         verdict.Code = "ClusterScoped"
	NameRequired          verdict.Code = "NameRequired"
	NoPathToObject        verdict.Code = "NoPathToObject"
	NotOwnNode            verdict.Code = "NotOwnNode"
	NotOwnCSINode         verdict.Code = "NotOwnCSINode"
	NotOwnLease           verdict.Code = "NotOwnLease"
	NotLeaseNamespace     verdict.Code = "NotLeaseNamespace"
	FieldSelectorRequired verdict.Code = "FieldSelectorRequired"
)

// Summary returns one fixed sentence for each code. It is cheaper than a message,
// which names paths, and may be shown to the requesting node, because it names no
// object. It is empty for NotANode, which does not depend on the request, and for
// codes of other packages.
func Summary(code verdict.Code) string {
	switch code {
	case PathToObject:
		return "the object is related to this node"
	case OwnName:
		return "the object bears this node's name"
	case OwnFieldSelector:
		return "the field selector limits the request to this node"
	case GrantedToNodes:
		return "every node may do this"
	case UnnamedNode:
		return "the user is in group system:nodes but its name does not name a node"
	case NoRuleForResource:
		return "nodes have no access to this resource"
	case SubresourceNotAllowed:
		return "nodes have no access to this subresource"
	case VerbNotAllowed:
		return "nodes may not use this verb on this resource"
	case FeatureDisabled:
		return "nodes may do this only with a feature gate that is off"
	case NamespaceRequired:
		return "nodes may do this only in one namespace"
	case ClusterScoped:
		return "the resource has no namespace, but the request has one"
	case NameRequired:
		return "nodes may do this only to one object by name"
	case NoPathToObject:
		return "no relationship found between this node and this object"
	case NotOwnNode:
		return "a node may read only its own Node object"
	case NotOwnCSINode:
		return "a node may access only the CSINode that bears its name"
	case NotOwnLease:
		return "a node may access only the lease that bears its name"
	case NotLeaseNamespace:
		return "a node may access leases only in namespace kube-node-lease"
	case FieldSelectorRequired:
		return "nodes may do this only with the field selector spec.nodeName=<their name>"
	}
	return ""
}
