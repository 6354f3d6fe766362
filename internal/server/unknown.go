package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Before the API server has answered, nothing is known about nodes, not even the version of the rules.
// Users that are not nodes get their usual answers. The server itself is one of them: the API server
// may send questions about its requests before it lets it read the cluster.

var errClusterUnknown = errors.New("the server has not reached the API server of the cluster yet: retry")

// nodeBeforeCluster is the Node authorizer's answer.
func nodeBeforeCluster(_ context.Context, req *access.Request) (decision.Opinion, error) {
	identity := nodeidentity.Of(req.User, req.Groups)
	if !identity.IsNode {
		return decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NotANode}, nil
	}
	return decision.Opinion{Decision: verdict.NoOpinion, Code: decision.NotSynced, Node: identity.Name}, errClusterUnknown
}

// chainBeforeCluster is the answer of a chain, which depends on RBAC except for system:masters.
func chainBeforeCluster(_ context.Context, req *access.Request) (decision.Opinion, error) {
	if chain.Privileged(req) {
		return decision.Opinion{Decision: verdict.Allow, Code: chain.CodePrivilegedGroup, Authorizer: chain.NameMasters}, nil
	}
	return decision.Opinion{
		Decision: verdict.NoOpinion, Code: decision.NotSynced, Node: nodeidentity.Of(req.User, req.Groups).Name,
	}, errClusterUnknown
}

// admitBeforeCluster is NodeRestriction's answer.
func admitBeforeCluster(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
	identity := nodeidentity.Of(req.User, req.Groups)
	if !identity.IsNode {
		return noderestriction.Answer{
			Decision: verdict.Allow, Code: noderestriction.NotANode, Status: 200,
			Reason: verdict.Reason{Code: noderestriction.NotANode, Message: "the user is not a node, and only nodes are restricted"},
		}
	}
	return notReady(identity.Name, "the server has not reached the API server of the cluster yet", errClusterUnknown)
}

// authorizeBefore wraps the answers of before. A request that a NodeScope or a Quarantine may refuse must
// not be decided by later authorizers.
func (c *contained) authorizeBefore(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		if chain.Privileged(req) || !c.concerns(req.User, req.Extra) {
			return next(ctx, req)
		}
		return decision.Opinion{
			Decision: verdict.NoOpinion, Code: decision.NotSynced, Node: nodeidentity.Of(req.User, req.Groups).Name, FailClosed: true,
		}, errClusterUnknown
	}
}

// admitBefore does the same for writes.
func (c *contained) admitBefore(next decision.Admit) decision.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		if !c.concerns(req.User, req.Extra) {
			return next(ctx, req)
		}
		return notReady(nodeidentity.Of(req.User, req.Groups).Name, "the server has not reached the API server of the cluster yet",
			errClusterUnknown)
	}
}

// notReady is the answer to a write if the state is incomplete: clients retry.
func notReady(node, message string, err error) noderestriction.Answer {
	return undecided(node, decision.NotSynced, message, err)
}

// undecided is the answer to a write that cannot be decided.
func undecided(node string, code verdict.Code, message string, err error) noderestriction.Answer {
	return noderestriction.Answer{
		Decision: verdict.Deny, Code: code, Node: node, Status: 500,
		Reason: verdict.Reason{Code: code, Message: message, Hint: "try again in a moment"},
		Err:    fmt.Errorf("admit: %w", err),
	}
}

// readsNothing says that no object is decoded, for admitBeforeCluster.
func readsNothing(*noderestriction.Request) (object, oldObject bool) { return false, false }
