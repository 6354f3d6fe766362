package nodescope

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of answers. See docs/reference/reasons.
const (
	// No opinion.
	NotInScope  verdict.Code = "NotInScope"
	ScopePassed verdict.Code = "ScopePassed"

	// Refused, or observed.
	ScopeTokenWithoutNode   verdict.Code = "ScopeTokenWithoutNode"
	ScopeTokenNodeAmbiguous verdict.Code = "ScopeTokenNodeAmbiguous"
	ScopeNoRule             verdict.Code = "ScopeNoRule"
	ScopeNotAsNode          verdict.Code = "ScopeNotAsNode"
	ScopeNameNotNode        verdict.Code = "ScopeNameNotNode"
	ScopeSelectorRequired   verdict.Code = "ScopeSelectorRequired"
	ScopePodNotOnNode       verdict.Code = "ScopePodNotOnNode"
	ScopeAggregatedAPI      verdict.Code = "ScopeAggregatedAPI"
	ScopeInvalid            verdict.Code = "ScopeInvalid"
)

// Summary returns one fixed sentence for each code. It names no object and may be shown to the
// requesting account. It is empty for codes of other packages.
func Summary(code verdict.Code) string {
	switch code {
	case NotInScope:
		return "no NodeScope is about the user"
	case ScopePassed:
		return "the NodeScopes of the account let the request pass"
	case ScopeTokenWithoutNode:
		return "the token is bound to no node, and a NodeScope requires one"
	case ScopeTokenNodeAmbiguous:
		return "the user has several nodes or an empty one, and a NodeScope requires one"
	case ScopeNoRule:
		return "no rule of the account's NodeScope names this resource and verb"
	case ScopeNotAsNode:
		return "the account acts for its own node only, and the node itself may not do this"
	case ScopeNameNotNode:
		return "the account acts for its own node only, and the object does not have the name of this node"
	case ScopeSelectorRequired:
		return "the account acts for its own node only, and the request has no field selector for this node"
	case ScopePodNotOnNode:
		return "the account acts for its own node only, and the request names no pod on this node"
	case ScopeAggregatedAPI:
		return "the account acts for its own node only, and another API server serves this, where only a name in the path limits a request"
	case ScopeInvalid:
		return "the NodeScope of the account is not valid"
	}
	return ""
}
