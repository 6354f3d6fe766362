package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// decider answers from the state of the cluster with the rules of one version.
type decider struct {
	state *source.State
	ages  ages
	// tooOld counts answers of an endpoint that the state is too old for.
	tooOld      func(endpoint string)
	node        *nodeauthz.Authorizer
	restriction *noderestriction.Restriction
	// chain is nil in the mode Node; asksRBAC says whether RBAC is in it.
	chain    chain.Chain
	asksRBAC bool
}

// authorize is the evaluator of the mode that is configured.
func (d *decider) authorize() review.Evaluate {
	if d.chain != nil {
		return d.askChain
	}
	return d.askNode
}

// askNode puts a request to the Node authorizer alone.
func (d *decider) askNode(_ context.Context, req *nodeauthz.Request) (review.Opinion, error) {
	answer := d.node.Decide(req)
	opinion := review.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node}
	if answer.Code == nodeauthz.NotANode {
		return opinion, nil
	}
	if err := tooOldFor(d.ages, answer.Code, req); err != nil {
		d.tooOld(endpointOf(authorizePath))
		return tooOld(opinion), err
	}
	opinion.Reason = string(answer.Code) + ": " + nodeauthz.Summary(answer.Code)
	if answer.Decision == verdict.Allow {
		opinion.Authorizer = chain.NameNode
		return opinion, nil
	}
	opinion.Detail = func() string { return d.node.Message(req, answer) }
	if answer.Code != nodeauthz.NoPathToObject {
		return opinion, nil
	}
	opinion.Stale = true
	return opinion, unread(d.state.Missing(), req)
}

// askChain puts a request to the authorizers in their order. One whose state is
// too old has no opinion, as one that fails.
func (d *decider) askChain(ctx context.Context, req *nodeauthz.Request) (review.Opinion, error) {
	result, old, err := d.brief(ctx, req)
	said := telling(result)
	opinion := review.Opinion{
		Decision: result.Decision, Reason: result.Reason(), Code: said.Code,
		Node: nodeidentity.Of(req.User, req.Groups).Name, Authorizer: result.DecidedBy,
	}
	if old != nil && result.Decision == verdict.NoOpinion {
		d.tooOld(endpointOf(authorizePath))
		return tooOld(opinion), errors.Join(err, old)
	}
	if err != nil || result.Decision != verdict.NoOpinion {
		return opinion, err
	}
	missing := d.state.Missing()
	if said.Code == nodeauthz.NoPathToObject {
		opinion.Stale = true
		err = unread(missing, req)
	}
	if said.Authorizer == chain.NameNode {
		opinion.Detail = func() string { return d.node.Message(req, d.node.Decide(req)) }
	}
	if err == nil && d.asksRBAC {
		err = unreadRBAC(missing)
	}
	return opinion, err
}

// brief asks the authorizers until one decides with a state that is not too old.
// Old is the error of those whose state is.
func (d *decider) brief(ctx context.Context, req *nodeauthz.Request) (result chain.Result, old, err error) {
	rest, failed := d.chain.Brief(ctx, req)
	if d.ages.Fresh() {
		return rest, nil, failed
	}
	for {
		result.Decision, result.DecidedBy, result.NotAsked = rest.Decision, rest.DecidedBy, rest.NotAsked
		err = errors.Join(err, failed)
		again := false
		for i := range rest.Opinions {
			o := &rest.Opinions[i]
			tooOld := d.tooOldIn(o, req)
			if tooOld == nil {
				continue
			}
			old = errors.Join(old, fmt.Errorf("authorizer %s: %w", o.Authorizer, tooOld))
			again = again || o.Decision != verdict.NoOpinion
			*o = chain.Opinion{Authorizer: o.Authorizer, Decision: verdict.NoOpinion, Error: tooOld.Error()}
		}
		result.Opinions = append(result.Opinions, rest.Opinions...)
		if !again {
			break
		}
		result.Decision, result.DecidedBy = verdict.NoOpinion, ""
		rest, failed = d.chain[len(result.Opinions):].Brief(ctx, req)
	}
	if result.Decision != verdict.NoOpinion {
		err = nil
	}
	return result, old, err
}

// telling is the opinion that stands for a result: the one that decided; of a
// node's request that nobody decided, the Node authorizer's; else the last.
func telling(result chain.Result) chain.Opinion {
	var last chain.Opinion
	for _, o := range result.Opinions {
		switch {
		case o.Authorizer == result.DecidedBy:
			return o
		case o.Authorizer == chain.NameNode && o.Code != nodeauthz.NotANode:
			last = o
		case last.Authorizer != chain.NameNode:
			last = o
		}
	}
	return last
}

// admit puts a write to NodeRestriction. A refusal for want of an object that
// may not be read is no answer.
func (d *decider) admit(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
	fresh := d.ages.Fresh()
	answer := d.restriction.Decide(ctx, req)
	// What was allowed after an access review may rest on state that was dropped, or
	// became too old, while the API server was asked.
	meanwhile := fresh && answer.Decision == verdict.Allow
	if !d.ages.Fresh() && (answer.Stale || refusesUnfound(answer.Code) || meanwhile) {
		if err := d.ages.TooOld(restrictionKinds(req)); err != nil && answer.Code != noderestriction.NotANode {
			d.tooOld(endpointOf(admitPath))
			return undecided(answer.Node, freshness.StateTooOld, "the state of the cluster that this depends on is too old", err)
		}
	}
	if !answer.Stale {
		return answer
	}
	if _, err := rights(d.state.Missing()); err != nil {
		return notYet(answer.Node, "the server may not read all that this depends on", err)
	}
	return answer
}
