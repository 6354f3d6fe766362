package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// decider answers the webhooks with the opinions of an evaluator. Its errors are for operators.
type decider struct {
	*evaluate.Evaluator
	// tooOld counts answers of an endpoint that are errors because the state is too old.
	tooOld func(endpoint string)
	// observed is called for each write that a NodeScope in the mode Observe would refuse.
	observed func(*noderestriction.Request, *decision.ScopeRefusal)
}

// authorize wraps the evaluator of the configured mode.
func (d *decider) authorize(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := next(ctx, req)
		if err == nil {
			return opinion, nil
		}
		if opinion.Code == decision.StateTooOld {
			d.tooOld(endpointOf(authorizePath))
		}
		if unread := new(evaluate.UnreadError); errors.As(err, &unread) {
			err = needsRights(unread.Resources)
		}
		return opinion, err
	}
}

// related reports whether a missing relation, because of which a request was refused, is there now.
func (d *decider) related(req *access.Request) bool {
	if _, _, account := nodeidentity.ServiceAccount(req.User); account && d.Scopes != nil {
		answer := d.Scopes.Decide(req)
		return answer.Decision != verdict.Deny
	}
	return d.Node.Decide(req).Decision == verdict.Allow
}

// admit evaluates a write with Quarantines, NodeScopes and NodeRestriction. A refusal that could depend on stale or unreadable
// state is an error.
func (d *decider) admit(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
	a := d.Admit(ctx, req)
	if a.Scope != nil && !a.Scope.Enforced {
		d.observed(req, a.Scope)
	}
	switch {
	case a.Contained != nil && evaluate.IsTooOld(a.Contained):
		d.tooOld(endpointOf(admitPath))
		return undecided(a.Node, decision.StateTooOld, "the state that the answer depends on is too old", a.Contained)
	case a.Contained != nil:
		return notReady(a.Node, "the state that the answer depends on is not known yet", a.Contained)
	case a.TooOld != nil:
		d.tooOld(endpointOf(admitPath))
		return undecided(a.Node, decision.StateTooOld, "the state of the cluster that this depends on is too old", a.TooOld)
	case len(a.Unread) > 0:
		return notReady(a.Node, "the server may not read all that this depends on", needsRights(a.Unread))
	}
	return a.Answer
}

func needsRights(missing []source.Missing) error {
	resources := make([]string, len(missing))
	for i, m := range missing {
		resources[i] = m.Resource.String()
	}
	return fmt.Errorf("not decided: the server may not read %s; bind the cluster role of node-authorizer to its user",
		strings.Join(resources, ", "))
}

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
