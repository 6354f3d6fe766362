package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AuthorizeNode puts a request to the Node authorizer alone. The error of a refusal that
// something could turn is an [*UnreadError], a [*LackError], or that of a state which is
// too old.
func (e *Evaluator) AuthorizeNode(_ context.Context, req *access.Request) (decision.Opinion, error) {
	answer := e.Node.Decide(req)
	opinion := decision.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node}
	if answer.Code == nodeauthz.NotANode {
		return opinion, nil
	}
	if !e.ages.Fresh() {
		if err := e.ages.TooOld(authorizationReads(answer.Code, req)); err != nil {
			return tooOld(opinion), err
		}
	}
	opinion.Reason = string(answer.Code) + ": " + nodeauthz.Summary(answer.Code)
	if answer.Decision == verdict.Allow {
		opinion.Authorizer = chain.NameNode
		return opinion, nil
	}
	opinion.Detail = func() string { return e.Node.Message(req, answer) }
	opinion.Stale = answer.Code == nodeauthz.NoPathToObject
	return opinion, e.undecided(req, answer.Code, false)
}

// Authorize puts a request to all authorizers. The errors are those of AuthorizeNode, and
// those of authorizers that failed. An authorizer whose state is too old has no opinion, as
// one that fails.
func (e *Evaluator) Authorize(ctx context.Context, req *access.Request) (decision.Opinion, error) {
	result, old, err := e.ask(ctx, req)
	return e.opinion(req, result, old, err)
}

// Review is Authorize for those who ask about an API server without being one: what a
// failure policy decides about a webhook that did not answer is no answer, because the
// API server's own call may be answered. What fails for the API server too is in
// EvaluationError.
func (e *Evaluator) Review(ctx context.Context, req *access.Request) (decision.Opinion, error) {
	result, old, _ := e.ask(ctx, req) // the opinions have the errors
	if why := result.Doubt(); why != "" {
		return decision.Opinion{Decision: verdict.NoOpinion}, errors.New(why)
	}
	opinion, err := e.opinion(req, result, old, nil)
	opinion.EvaluationError = evaluationError(result)
	if result.Decision == verdict.Deny && err == nil {
		// Those who were asked before could have allowed it.
		code, asksRBAC := askedBefore(result)
		err = e.undecided(req, code, asksRBAC)
	}
	return opinion, err
}

// askedBefore returns the Node authorizer's code, if it was asked, and whether RBAC was.
func askedBefore(result chain.Result) (code verdict.Code, rbac bool) {
	for _, o := range result.Opinions {
		switch o.Authorizer {
		case chain.NameNode:
			code = o.Code
		case chain.NameRBAC:
			rbac = true
		}
	}
	return code, rbac
}

func (e *Evaluator) opinion(req *access.Request, result chain.Result, old, err error) (decision.Opinion, error) {
	identity, main := nodeidentity.Of(req.User, req.Groups), Main(result)
	opinion := decision.Opinion{
		Decision: result.Decision, Reason: result.Reason(), Code: main.Code, Node: identity.Name, Authorizer: result.DecidedBy,
	}
	if result.Decision == verdict.NoOpinion && !identity.IsNode {
		opinion.Code = nodeauthz.NotANode
	}
	if old != nil && result.Decision == verdict.NoOpinion {
		return tooOld(opinion), errors.Join(err, old)
	}
	if err != nil || result.Decision != verdict.NoOpinion {
		return opinion, err
	}
	opinion.Stale = opinion.Code == nodeauthz.NoPathToObject
	if main.Authorizer == chain.NameNode {
		opinion.Detail = func() string { return e.inFull(req, result) }
	}
	return opinion, e.undecided(req, opinion.Code, e.mayAskRBAC)
}

// inFull is the reason of a result, with the Node authorizer's at length.
func (e *Evaluator) inFull(req *access.Request, result chain.Result) string {
	for i := range result.Opinions {
		if o := &result.Opinions[i]; o.Node != nil {
			o.Message = e.Node.Message(req, *o.Node)
		}
	}
	return result.Reason()
}

// ask asks the authorizers until one decides with a state that is not too old.
// Old is the error of those whose state is.
func (e *Evaluator) ask(ctx context.Context, req *access.Request) (result chain.Result, old, err error) {
	rest, failed := e.Chain.Brief(ctx, req)
	if e.ages.Fresh() {
		return rest, nil, failed
	}
	for {
		result.Decision, result.DecidedBy, result.NotAsked = rest.Decision, rest.DecidedBy, rest.NotAsked
		err = errors.Join(err, failed)
		again := false
		for i := range rest.Opinions {
			o := &rest.Opinions[i]
			tooOld := e.tooOldIn(o, req)
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
		rest, failed = e.Chain[len(result.Opinions):].Brief(ctx, req)
	}
	if result.Decision != verdict.NoOpinion {
		err = nil
	}
	return result, old, err
}

// tooOld is the opinion beside the error of a state that is too old.
func tooOld(opinion decision.Opinion) decision.Opinion {
	return decision.Opinion{
		Decision: verdict.NoOpinion, Code: decision.StateTooOld, Node: opinion.Node, Authorizer: opinion.Authorizer,
	}
}

// Main is the opinion that stands for a result: the one that decided; of a
// node's request that nobody decided, the Node authorizer's; else the last.
func Main(result chain.Result) chain.Opinion {
	var last chain.Opinion
	for _, o := range result.Opinions {
		last = o
		if result.DecidedBy == "" && o.Authorizer == chain.NameNode && o.Code != nodeauthz.NotANode || result.DecidedBy != "" && o.Authorizer == result.DecidedBy {
			break
		}
	}
	return last
}
