// Package chain asks authorizers in order, as an API server does: the first that
// allows or denies decides, and one without an opinion passes the request to the
// next. Its results contain the opinion of each authorizer.
//
// Compose a [Chain] in code, or [Load] the AuthorizationConfiguration of an API
// server and build it: the Node authorizer, RBAC, webhooks with their match
// conditions and failure policies, AlwaysAllow and AlwaysDeny. [Chain.Decide] is the
// fastest, [Chain.Brief] gives reasons that the requesting user may see,
// [Chain.Explain] gives full reasons.
//
// An authorizer that fails has no opinion, and its error is kept: if no later
// authorizer allows or denies, the request could not be decided, and the chain
// returns the error. The chain never turns an error into an answer. If the
// configuration does so, because the failure policy of a webhook is Deny, the opinion
// says that the policy denied and what failed.
package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorizer is one authorizer of a chain.
type Authorizer interface {
	// Name is the name of the authorizer for people: "Node", or the name that a
	// webhook is configured with.
	Name() string
	// Authorize decides. The decision and the error do not depend on the detail,
	// which only selects the length of the reason.
	Authorize(ctx context.Context, req *access.Request, detail Detail) (Opinion, error)
}

// Detail is how detailed the reason of a decision is.
type Detail uint8

const (
	// DecisionOnly asks for no reason, to save its cost.
	DecisionOnly Detail = iota
	// Brief asks for a code and a message that may be shown to the requesting user:
	// it names no other objects or nodes, and nothing of a webhook's configuration.
	Brief
	// Full asks for the complete reason.
	Full
)

// Opinion is the answer of one authorizer to a request.
type Opinion struct {
	// Authorizer is the name of the authorizer, and Decision its answer.
	Authorizer string           `json:"authorizer"`
	Decision   verdict.Decision `json:"decision"`
	// Rule is the rule that decided, in the authorizer's own notation; empty when
	// none did.
	Rule string `json:"rule,omitempty"`
	verdict.Reason
	// Error says why the authorizer could not evaluate the request; empty if it
	// could. The decision is then NoOpinion, or the Deny of its failure policy.
	Error string `json:"error,omitempty"`
	// Node is the answer of the Node authorizer, from which
	// [nodeauthz.Authorizer.Message] makes the full message; nil for other
	// authorizers.
	Node *nodeauthz.Answer `json:"-"`
	// Repeatable is true for an Error that occurs in every API server with this
	// configuration, because it depends only on the request or on a webhook's answer:
	// a match condition that cannot be evaluated, an answer that allows and denies.
	// The API server then makes the same Decision. Repeatable is false if an authorizer
	// could not be reached.
	Repeatable bool `json:"-"`
	// OnlyRefuses is true for an authorizer that never allows. If it fails, a later allow is not an answer,
	// because this authorizer might have refused; a refusal by the others is.
	OnlyRefuses bool `json:"-"`
}

// Result is the answer of a chain to a request.
type Result struct {
	// Decision is the deciding opinion's, else NoOpinion. An API server refuses a
	// request if no authorizer has an opinion.
	Decision verdict.Decision `json:"decision"`
	// DecidedBy names the authorizer that decided; empty if none did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Opinions has an opinion for each authorizer that was asked, in order, also for
	// authorizers that failed.
	Opinions []Opinion `json:"opinions"`
	// NotAsked names the authorizers after the one that decided.
	NotAsked []string `json:"notAsked,omitempty"`
}

// Chain is a list of authorizers in the order in which they are asked.
type Chain []Authorizer

// Decide returns the decision without reasons, and the name of the authorizer that
// decided. The error joins the errors of the authorizers that failed; the decision is then
// NoOpinion. It is an error too if an authorizer that only refuses failed and a later one allows.
func (c Chain) Decide(ctx context.Context, req *access.Request) (decision verdict.Decision, by string, err error) {
	var failed []error
	blind := false
	for _, a := range c {
		opinion, err := a.Authorize(ctx, req, DecisionOnly)
		switch {
		case err != nil:
			failed, blind = append(failed, failure(a, err)), blind || opinion.OnlyRefuses
		case blind && opinion.Decision == verdict.Allow:
			return verdict.NoOpinion, "", errors.Join(failed...)
		case opinion.Decision != verdict.NoOpinion:
			return opinion.Decision, a.Name(), nil
		}
	}
	return verdict.NoOpinion, "", errors.Join(failed...)
}

// Brief answers like Decide, with reasons of the detail [Brief]. It returns the same
// error as Decide; the result then still holds all opinions.
func (c Chain) Brief(ctx context.Context, req *access.Request) (Result, error) {
	return c.authorize(ctx, req, func(Authorizer) Detail { return Brief })
}

// Explain answers like Decide, with the full reasons of all authorizers that were
// asked. It returns the same error as Decide; the result then still holds all opinions.
func (c Chain) Explain(ctx context.Context, req *access.Request) (Result, error) {
	return c.authorize(ctx, req, func(Authorizer) Detail { return Full })
}

func (c Chain) authorize(ctx context.Context, req *access.Request, detail func(Authorizer) Detail) (Result, error) {
	result := Result{Decision: verdict.NoOpinion, Opinions: make([]Opinion, 0, len(c))}
	var failed []error
	blind := false
	for i, a := range c {
		opinion, err := a.Authorize(ctx, req, detail(a))
		opinion.Authorizer = a.Name()
		if err != nil {
			opinion.Decision, opinion.Error = verdict.NoOpinion, err.Error()
			failed, blind = append(failed, failure(a, err)), blind || opinion.OnlyRefuses
		}
		result.Opinions = append(result.Opinions, opinion)
		if blind && opinion.Decision == verdict.Allow {
			result.NotAsked = c[i+1:].Names()
			return result, errors.Join(failed...)
		}
		if opinion.Decision != verdict.NoOpinion {
			result.Decision, result.DecidedBy = opinion.Decision, a.Name()
			result.NotAsked = c[i+1:].Names()
			return result, nil
		}
	}
	return result, errors.Join(failed...)
}

func failure(a Authorizer, err error) error { return fmt.Errorf("authorizer %s: %w", a.Name(), err) }

// Names lists the authorizers in order.
func (c Chain) Names() []string {
	var names []string
	for _, a := range c {
		names = append(names, a.Name())
	}
	return names
}

// Reason returns one line for the status of a SubjectAccessReview: the authorizer
// that decided and why, or the opinions of all authorizers that were asked: "RBAC:
// allowed by …".
func (r Result) Reason() string {
	var said []string
	for _, o := range r.Opinions {
		switch {
		case o.Authorizer == r.DecidedBy:
			return o.Authorizer + ": " + o.Message
		case o.Message != "" && !silent(o.Code):
			said = append(said, o.Authorizer+": "+o.Message)
		}
	}
	return strings.Join(said, "; ")
}

// silent reports whether a code says only that an authorizer is not concerned.
func silent(code verdict.Code) bool {
	switch code {
	case CodeNotPrivileged, nodescope.NotInScope, nodescope.ScopePassed, quarantine.NotQuarantined:
		return true
	}
	return false
}
