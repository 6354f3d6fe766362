// Package decision has the types of an evaluator's answer to one request. The code that
// makes decisions, counts them, logs them, delays them and encodes them has these types in
// common.
package decision

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The codes of requests that could not be decided.
const (
	// NotSynced is the code of answers that cannot be given yet: they would be
	// refusals, and the state that they would be about has not been read.
	NotSynced verdict.Code = "NotSynced"
	// StateTooOld is the code of answers that cannot be given because the state that
	// they would be about is older than it may be.
	StateTooOld verdict.Code = "StateTooOld"
)

// Opinion is the answer of an authorizer, or of a chain of them, to one
// request.
type Opinion struct {
	Decision verdict.Decision
	// Reason is one line that is shown to the one who asks; empty for an Allow
	// that needs none.
	Reason string
	// Code is the stable name of the reason; empty when there is none.
	Code verdict.Code
	// Node is the node that asks; empty if none does.
	Node string
	// Authorizer decided; empty when none did.
	Authorizer string
	// EvaluationError is a failure beside a decision that stands all the same, such as
	// the Deny of a failure policy; empty if nothing did.
	EvaluationError string
	// Detail is nil, or returns the reason of this decision at length: it may name
	// objects and nodes that the one who asks must not know of.
	Detail func() string
	// Stale is true for a refusal that the API server may already hold the reason to turn
	// into an Allow.
	Stale bool
	// FailClosed is true beside an error if no opinion would not do as an answer: a later authorizer
	// could allow what a NodeScope or a Quarantine, which could not be evaluated, may refuse.
	FailClosed bool
	// Scope is set if a NodeScope refuses the request, or would in the mode Enforce.
	Scope *ScopeRefusal
}

// ScopeRefusal is a refusal by a NodeScope, or one that it would make if it were enforced.
type ScopeRefusal struct {
	// Account is the user, Scope the NodeScope and Code the reason.
	Account, Scope string
	Code           verdict.Code
	// Enforced is true in the mode Enforce.
	Enforced bool
	// Message says why at length. It may name the NodeScope's rules.
	Message func() string
}

// Authorize puts one request to an authorizer. An error means that the question
// could not be decided; it becomes the status's evaluationError, and the
// request is not allowed. It must be safe for concurrent use, and must not keep the request.
type Authorize func(ctx context.Context, req *access.Request) (Opinion, error)

// Admit puts one write to NodeRestriction. It must be safe for concurrent use
// and must not keep the request.
type Admit func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer
