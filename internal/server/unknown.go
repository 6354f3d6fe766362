package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
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

// authorizeBefore is the answer of the authorizers. A request that a NodeScope or a Quarantine may refuse must not be
// decided by later ones.
func (w *webhooks) authorizeBefore(_ context.Context, req *access.Request) (decision.Opinion, error) {
	identity, privileged := nodeidentity.Of(req.User, req.Groups), chain.Privileged(req)
	contained := !privileged && w.contained.concerns(req.User, req.Extra)
	switch {
	case contained:
	case privileged && w.chain != nil:
		return decision.Opinion{Decision: verdict.Allow, Code: chain.CodePrivilegedGroup, Authorizer: chain.NameMasters}, nil
	case w.chain == nil && !identity.IsNode:
		return decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NotANode}, nil
	}
	return decision.Opinion{
		Decision: verdict.NoOpinion, Code: decision.NotSynced, Node: identity.Name, FailClosed: contained,
	}, errClusterUnknown
}

// admitBefore is the answer to a write.
func (w *webhooks) admitBefore(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
	identity := nodeidentity.Of(req.User, req.Groups)
	if identity.IsNode || w.contained.concerns(req.User, req.Extra) {
		return notReady(identity.Name, "the server has not reached the API server of the cluster yet", errClusterUnknown)
	}
	return noderestriction.Answer{
		Decision: verdict.Allow, Code: noderestriction.NotANode, Status: 200,
		Reason: verdict.Reason{Code: noderestriction.NotANode, Message: "the user is not a node, and only nodes are restricted"},
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

// readsNothing says that no object is decoded, for admitBefore.
func readsNothing(*noderestriction.Request) (object, oldObject bool) { return false, false }
