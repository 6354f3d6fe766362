package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AuthorizeNode evaluates a request by the Node authorizer alone. If missing state could
// change a refusal, the error is an [*UnreadError], a [*LackError], or the error of a state
// that is too old.
func (e *Evaluator) AuthorizeNode(_ context.Context, req *access.Request) (decision.Opinion, error) {
	contained, refused, err := e.contain(req)
	if refused || err != nil {
		return contained, err
	}
	answer := e.Node.Decide(req)
	opinion := decision.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node, Scope: contained.Scope}
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

// Authorize evaluates a request by all authorizers. It returns the errors of AuthorizeNode,
// and of authorizers that failed. An authorizer whose state is too old has no opinion,
// like one that failed.
func (e *Evaluator) Authorize(ctx context.Context, req *access.Request) (decision.Opinion, error) {
	contained, refused, err := e.contain(req)
	if refused || err != nil {
		return contained, err
	}
	result, old, err := e.ask(ctx, req)
	opinion, err := e.opinion(req, result, old, err)
	opinion.Scope = contained.Scope
	return opinion, err
}

// Review predicts the answer of an API server; Authorize gives the answer to one. If a
// webhook does not answer, the decision of its failure policy is not a prediction, because
// the webhook may answer the API server's own call. Errors that the API server would have
// too are in EvaluationError.
func (e *Evaluator) Review(ctx context.Context, req *access.Request) (decision.Opinion, error) {
	if contained, refused, err := e.contain(req); refused || err != nil {
		return contained, err
	}
	result, old, _ := e.ask(ctx, req) // the opinions hold the errors
	if why := result.Doubt(); why != "" {
		return decision.Opinion{Decision: verdict.NoOpinion}, errors.New(why)
	}
	opinion, err := e.opinion(req, result, old, nil)
	opinion.EvaluationError = evaluationError(result)
	if result.Decision == verdict.Deny && err == nil {
		// An earlier authorizer could have allowed it.
		code, asksRBAC := askedBefore(result)
		err = e.undecided(req, code, asksRBAC)
	}
	return opinion, err
}

// askedBefore returns the code of the Node authorizer, if it was asked, and whether RBAC
// was asked.
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
		opinion.Detail = func() string { // the reason with the full message of the Node authorizer
			for i := range result.Opinions {
				if o := &result.Opinions[i]; o.Node != nil {
					o.Message = e.Node.Message(req, *o.Node)
				}
			}
			return result.Reason()
		}
	}
	return opinion, e.undecided(req, opinion.Code, e.mayAskRBAC)
}

// ask asks the authorizers that [Evaluator.contain] does not ask until one decides from a state that is not too old. The error
// old joins the errors of authorizers whose state is too old.
func (e *Evaluator) ask(ctx context.Context, req *access.Request) (result chain.Result, old, err error) {
	after := e.withoutContainment()
	rest, failed := after.Brief(ctx, req)
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
		rest, failed = after[len(result.Opinions):].Brief(ctx, req)
	}
	if result.Decision != verdict.NoOpinion {
		err = nil
	}
	return result, old, err
}

// tooOld returns the opinion that goes with the error of a state that is too old.
func tooOld(opinion decision.Opinion) decision.Opinion {
	return decision.Opinion{
		Decision: verdict.NoOpinion, Code: decision.StateTooOld, Node: opinion.Node, Authorizer: opinion.Authorizer,
	}
}

// Main returns the opinion that represents a result: the one that decided. If none did, it
// is the Node authorizer's opinion for a request of a node, and the last opinion otherwise.
func Main(result chain.Result) chain.Opinion {
	var last chain.Opinion
	for _, o := range result.Opinions {
		last = o
		aboutNode := o.Authorizer == chain.NameNode && o.Code != nodeauthz.NotANode
		if result.DecidedBy == "" && aboutNode || result.DecidedBy != "" && o.Authorizer == result.DecidedBy {
			break
		}
	}
	return last
}
