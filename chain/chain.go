// Package chain asks authorizers in order, as an API server does: the first
// that allows or denies decides, and one without an opinion leaves the question
// to the next. Its results keep what each authorizer said.
//
// Make a [Chain] by hand, or [Load] the AuthorizationConfiguration that an API server
// reads and build it: the Node authorizer, RBAC, webhooks with their match conditions and
// failure policies, AlwaysAllow and AlwaysDeny. [Chain.Decide] answers fast,
// [Chain.Brief] in words that whoever asked may see, [Chain.Explain] at length.
//
// An authorizer that fails has no opinion, and its error is kept: when nobody
// after it allows or denies, the question could not be decided, and the chain
// returns the error. It never turns an error into an answer. Where the
// configuration does so, because the failure policy of a webhook is Deny, the
// denial is the policy's, and the opinion says what failed.
package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorizer is one link of a chain.
type Authorizer interface {
	// Name is what people know the authorizer by: "Node", or the name that a
	// webhook is configured with.
	Name() string
	// Authorize decides. The decision and the error do not depend on the detail, which
	// says how much of a reason is wanted.
	Authorize(ctx context.Context, req *access.Request, detail Detail) (Opinion, error)
}

// Detail is how much of its reason an authorizer gives beside its decision.
type Detail uint8

const (
	// DecisionOnly asks for no reason: whatever one would cost can be left out.
	DecisionOnly Detail = iota
	// Brief asks for a code and words that may be shown to whoever made the request: they
	// name no other objects or nodes, and nothing of a webhook's configuration.
	Brief
	// Full asks for everything that the authorizer has to say.
	Full
)

// Opinion is what one authorizer says to a request.
type Opinion struct {
	Authorizer string           `json:"authorizer"`
	Decision   verdict.Decision `json:"decision"`
	// Rule is the rule that decided, in the authorizer's own words; empty when
	// none did.
	Rule string `json:"rule,omitempty"`
	verdict.Reason
	// Error says why the authorizer could not evaluate the request; empty if it
	// could. The decision is then NoOpinion, or the Deny of its failure policy.
	Error string `json:"error,omitempty"`
	// Node is what the Node authorizer answered, for its words at length
	// ([nodeauthz.Authorizer.Message]); nil for other authorizers.
	Node *nodeauthz.Answer `json:"-"`
	// Repeatable is true for an Error that every API server with this configuration
	// meets, because it follows from the request or from what a webhook answered: a
	// match condition that cannot be evaluated, an answer that allows and denies. The
	// Decision is then that of the API server. False if somebody could not be asked.
	Repeatable bool `json:"-"`
}

// Result is what a chain says to a request.
type Result struct {
	// Decision is the deciding opinion's, else NoOpinion. An API server refuses
	// a request about which nobody has an opinion.
	Decision verdict.Decision `json:"decision"`
	// DecidedBy names the authorizer that decided; empty when nobody did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Opinions are those of the authorizers asked, in order, also of those that
	// failed.
	Opinions []Opinion `json:"opinions"`
	// NotAsked names the authorizers after the one that decided.
	NotAsked []string `json:"notAsked,omitempty"`
}

// Chain is a list of authorizers in the order in which they are asked.
type Chain []Authorizer

// Decide answers fast and names the authorizer that decided. An error joins
// those of the authorizers that failed; the decision is then NoOpinion.
func (c Chain) Decide(ctx context.Context, req *access.Request) (decision verdict.Decision, by string, err error) {
	var failed []error
	for _, a := range c {
		opinion, err := a.Authorize(ctx, req, DecisionOnly)
		switch {
		case err != nil:
			failed = append(failed, failure(a, err))
		case opinion.Decision != verdict.NoOpinion:
			return opinion.Decision, a.Name(), nil
		}
	}
	return verdict.NoOpinion, "", errors.Join(failed...)
}

// Brief answers like Decide and gives the reasons as [Brief] asks for them. With an
// error, which is as in Decide, the result holds all opinions.
func (c Chain) Brief(ctx context.Context, req *access.Request) (Result, error) {
	return c.authorize(ctx, req, func(Authorizer) Detail { return Brief })
}

// Explain answers with everything that the authorizers asked have to say. With
// an error, which is as in Decide, the result holds all opinions.
func (c Chain) Explain(ctx context.Context, req *access.Request) (Result, error) {
	return c.authorize(ctx, req, func(Authorizer) Detail { return Full })
}

func (c Chain) authorize(ctx context.Context, req *access.Request, detail func(Authorizer) Detail) (Result, error) {
	result := Result{Decision: verdict.NoOpinion, Opinions: make([]Opinion, 0, len(c))}
	var failed []error
	for i, a := range c {
		opinion, err := a.Authorize(ctx, req, detail(a))
		opinion.Authorizer = a.Name()
		if err != nil {
			opinion.Decision, opinion.Error = verdict.NoOpinion, err.Error()
			failed = append(failed, failure(a, err))
		}
		result.Opinions = append(result.Opinions, opinion)
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

// Reason is who decided and why, else what all who were asked say, in the one
// line that the status of a SubjectAccessReview has room for: "RBAC: allowed by
// …".
func (r Result) Reason() string {
	var said []string
	for _, o := range r.Opinions {
		switch {
		case o.Authorizer == r.DecidedBy:
			return o.Authorizer + ": " + o.Message
		case o.Message != "" && o.Code != CodeNotPrivileged:
			said = append(said, o.Authorizer+": "+o.Message)
		}
	}
	return strings.Join(said, "; ")
}
