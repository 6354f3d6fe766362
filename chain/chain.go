// Package chain asks authorizers in order, as an API server does: the first
// that allows or denies decides, and one without an opinion leaves the question
// to the next. Its results keep what each authorizer said.
//
// An authorizer that fails has no opinion, and its error is kept: when nobody
// after it allows or denies, the question could not be decided, and the chain
// returns the error. It never turns an error into an answer.
package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorizer is one link of a chain. Both methods give the same decision for
// the same state and request.
type Authorizer interface {
	// Name is the authorizer's name in an API server's configuration: "Node".
	Name() string
	// Decide answers fast.
	Decide(ctx context.Context, req *nodeauthz.Request) (verdict.Decision, error)
	// Explain also says why.
	Explain(ctx context.Context, req *nodeauthz.Request) (Opinion, error)
}

// Opinion is what one authorizer says to a request.
type Opinion struct {
	Authorizer string           `json:"authorizer"`
	Decision   verdict.Decision `json:"decision"`
	// Rule is the rule that decided, in the authorizer's own words; empty when
	// none did.
	Rule string `json:"rule,omitempty"`
	verdict.Reason
}

// Result is what a chain says to a request.
type Result struct {
	// Decision is the deciding opinion's, else NoOpinion. An API server refuses
	// a request about which nobody has an opinion.
	Decision verdict.Decision `json:"decision"`
	// DecidedBy names the authorizer that decided; empty when nobody did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Opinions are those of the authorizers asked, in order.
	Opinions []Opinion `json:"opinions"`
	// NotAsked names the authorizers after the one that decided.
	NotAsked []string `json:"notAsked,omitempty"`
}

// Chain is a list of authorizers in the order in which they are asked.
type Chain []Authorizer

// Decide answers fast and names the authorizer that decided. An error joins
// those of the authorizers that failed; the decision is then NoOpinion.
func (c Chain) Decide(ctx context.Context, req *nodeauthz.Request) (decision verdict.Decision, by string, err error) {
	var failed []error
	for _, a := range c {
		decision, err := a.Decide(ctx, req)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("authorizer %s: %w", a.Name(), err))
		case decision != verdict.NoOpinion:
			return decision, a.Name(), nil
		}
	}
	return verdict.NoOpinion, "", errors.Join(failed...)
}

// Explain answers with everything that the authorizers asked have to say. With
// an error, which is as in Decide, the result holds the opinions of the others.
func (c Chain) Explain(ctx context.Context, req *nodeauthz.Request) (Result, error) {
	result := Result{Decision: verdict.NoOpinion, Opinions: []Opinion{}}
	var failed []error
	for i, a := range c {
		opinion, err := a.Explain(ctx, req)
		if err != nil {
			failed = append(failed, fmt.Errorf("authorizer %s: %w", a.Name(), err))
			continue
		}
		opinion.Authorizer = a.Name()
		result.Opinions = append(result.Opinions, opinion)
		if opinion.Decision != verdict.NoOpinion {
			result.Decision, result.DecidedBy = opinion.Decision, a.Name()
			result.NotAsked = c[i+1:].Names()
			return result, nil
		}
	}
	return result, errors.Join(failed...)
}

// Names lists the authorizers in order.
func (c Chain) Names() []string {
	var names []string
	for _, a := range c {
		names = append(names, a.Name())
	}
	return names
}
