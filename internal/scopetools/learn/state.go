package learn

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// InState answers from a state what a node may do in it.
func InState(e *evaluate.Evaluator) Node { return state{e} }

type state struct{ *evaluate.Evaluator }

// NodeOf implements Node.
func (s state) NodeOf(namespace, pod string) string {
	nodes := s.State.Graph.NodesReaching(graph.Pod, namespace, pod)
	if len(nodes) == 0 {
		return ""
	}
	return nodes[0]
}

// IsNode implements Node.
func (s state) IsNode(name string) bool { return s.State.KnowsNode(name) }

// AsNode implements Node. A write whose object NodeRestriction would have to see is not allowed,
// but for tokens: a token that is not bound to a pod of the node is refused in any case.
func (s state) AsNode(req *access.Request, node string) bool {
	as := *req
	as.User, as.Groups = nodeidentity.User(node)
	as.UID, as.Extra = "", nil
	if s.Node.Decide(&as).Decision != verdict.Allow {
		return false
	}
	operation := noderestriction.OperationOf(req.Verb)
	if operation == "" || !req.ResourceRequest {
		return true
	}
	write := &noderestriction.Request{
		User: as.User, Groups: as.Groups, Operation: operation, Group: req.Group, Version: req.Version, Resource: req.Resource,
		Subresource: req.Subresource, Namespace: req.Namespace, Name: req.Name,
	}
	answer, conditions := s.Restriction.Consider(context.Background(), write, noderestriction.Open{
		Object: operation != noderestriction.Delete, OldObject: operation != noderestriction.Create,
		Name: req.Name == "", Namespace: false,
	})
	if len(conditions) > 0 {
		return req.Group == "" && req.Resource == "serviceaccounts" && req.Subresource == "token"
	}
	return answer.Decision == verdict.Allow
}
