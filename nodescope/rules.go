package nodescope

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// kind is a kind of rules of a NodeScope.
type kind uint8

const (
	asNode kind = iota
	namedAsNode
	selectsNode
	podsOnNode
	// namedAsPod rules are the rules of podsOnNode that name other resources than pods.
	namedAsPod
	anywhere
)

// Uses are the parts of the state that an answer depends on.
type Uses uint8

const (
	// UsesPods: the pods and their nodes.
	UsesPods Uses = 1 << iota
	// UsesNodeAuthorizer: the graph, as far as the Node authorizer reads it for [Answer.NodeCode].
	UsesNodeAuthorizer
	// UsesNodeRestriction: the state, as far as NodeRestriction reads it for [Answer.Restriction].
	UsesNodeRestriction
	// UsesAPIServices: whether another API server serves what is requested. Where that is not known, [Authorizer.Decide]
	// takes it that none does.
	UsesAPIServices
)

// kindInfo is what all rules of a kind have in common.
type kindInfo struct {
	// field is the field of spec that has the rules.
	field string
	// requires says what a request must be, beside what the rule names.
	requires string
	// refused is the code for requests that a rule names and that are not so.
	refused verdict.Code
	// uses is the state that the rules depend on.
	uses Uses
	// byName is true if the name of the object decides, also of one that is created.
	byName bool
	// hint says what to do about a refusal.
	hint string
}

// kinds has every kind of rules. Authorizer.check and Authorizer.admits decide by kind.
var kinds = [...]kindInfo{
	asNode: {
		field: "asNode", requires: "allowed to the node itself by the Node authorizer and NodeRestriction",
		refused: ScopeNotAsNode, uses: UsesNodeAuthorizer,
		hint: "ask can-i about the node itself, which says why it may not",
	},
	namedAsNode: {
		field: "namedAsNode", requires: "about the object with the name of the node",
		refused: ScopeNameNotNode, byName: true,
		hint: "read and write the object of the token's own node, one by one, by name",
	},
	selectsNode: {
		field: "selectsNode", requires: "limited to the node by a field selector",
		refused: ScopeSelectorRequired,
		hint:    "add the field selector; API servers before 1.32 do not send selectors to authorizers",
	},
	podsOnNode: {
		field: "podsOnNode", requires: "about a single pod on the node, by name",
		refused: ScopePodNotOnNode, uses: UsesPods,
		hint: "ask about pods on the token's own node, one by one, by name",
	},
	namedAsPod: {
		field: "podsOnNode", requires: "about a single object with the namespace and the name of a pod on the node",
		refused: ScopePodNotOnNode, uses: UsesPods, byName: true,
		hint: "read and write objects that are named like pods on the token's own node, one by one, by name",
	},
	anywhere: {field: "anywhere", requires: "anything"},
}

// rule is one rule of a scope.
type rule struct {
	kind kind
	// name is the place in spec: "namedAsNode[0]".
	name string
	// names are the requests that the rule is about, as in RBAC. It is empty for asNode.
	names rbacv1.PolicyRule
	// namespaces of requests; empty for all.
	namespaces []string
	// field of the selector, for selectsNode.
	field string
}

// reliesOnServer reports whether more than the path of a request has to limit it to what the rule lets pass: admission,
// which kube-apiserver runs for what it serves itself, or a selector. What a node may do is about objects that
// kube-apiserver serves.
func (r *rule) reliesOnServer(req *access.Request) bool {
	if !req.ResourceRequest {
		return false
	}
	switch r.kind {
	case asNode:
		return true
	case anywhere:
		return len(r.names.ResourceNames) > 0 && (req.Verb == "list" || req.Verb == "watch")
	case namedAsNode, selectsNode, podsOnNode, namedAsPod:
	}
	switch req.Verb {
	case "create":
		return req.Name == "" && req.Subresource == ""
	case "list", "watch", "deletecollection":
		return true
	}
	return false
}

func (r *rule) info() *kindInfo { return &kinds[r.kind] }
