package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Admission is the answer of NodeRestriction to a write, with the missing state that could
// change it.
type Admission struct {
	noderestriction.Answer
	// TooOld is set if the state is too old for the answer.
	TooOld error
	// Contained is set if the NodeScopes or the Quarantines could not be evaluated. Nothing else of
	// the Admission counts then.
	Contained error
	// Scope is set if a NodeScope refuses the write, or would in the mode Enforce.
	Scope *decision.ScopeRefusal
	// Unread are the resources that could not be read and could change a refusal.
	Unread []source.Missing
	// Lacks are the objects that the files do not hold and that could change a refusal.
	Lacks []Lack
}

// Admit evaluates a write by the Quarantines, the NodeScopes and NodeRestriction.
func (e *Evaluator) Admit(ctx context.Context, req *noderestriction.Request) Admission {
	contained, decided := e.containWrite(ctx, req)
	if decided {
		return contained
	}
	a := e.admitNode(ctx, req)
	a.Scope = contained.Scope
	return a
}

// Reads reports which objects of a write Admit reads. Req needs no objects.
func (e *Evaluator) Reads(req *noderestriction.Request) (object, oldObject bool) {
	object, oldObject = e.Restriction.Reads(req)
	if e.Scopes == nil {
		return object, oldObject
	}
	scoped, scopedOld := e.Scopes.Reads(req)
	return object || scoped, oldObject || scopedOld
}

// admitNode evaluates a write by NodeRestriction alone.
func (e *Evaluator) admitNode(ctx context.Context, req *noderestriction.Request) Admission {
	fresh := e.ages.Fresh()
	a := Admission{Answer: e.Restriction.Decide(ctx, req)}
	// If the state was dropped or became too old during an access review, an allow may
	// rest on it. If it was too old before, an allow does not use it: see restrictionState.
	if !e.ages.Fresh() && (a.Decision != verdict.Allow || fresh) {
		if a.TooOld = e.ages.TooOld(admissionReads(req, a.Code)); a.TooOld != nil {
			return a
		}
	}
	a.Unread, a.Lacks = e.MissingForWrite(req, a.Answer)
	return a
}

// MissingForWrite returns the missing state that could change a refusal by NodeRestriction.
func (e *Evaluator) MissingForWrite(req *noderestriction.Request, answer noderestriction.Answer) ([]source.Missing, []Lack) {
	if answer.Decision == verdict.Allow {
		return nil, nil
	}
	on := admissionReads(req, answer.Code)
	if _, own := e.access.(ownAccess); own && asksAuthorizers(answer.Code) && e.mayAskRBAC {
		on |= source.RBACKinds()
	}
	_ = e.State.Probe(on) // the state keeps the error
	return unread(e.State, on), e.lackingForWrite(req, answer)
}

// ownAccess answers the access reviews of NodeRestriction with the Evaluator's authorizers.
// Only RBAC grants these rights, so a state without roles and bindings has no answer.
type ownAccess struct{ *Evaluator }

// Authorize implements noderestriction.Authorizer.
func (a ownAccess) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	decision, by, err := a.Chain.Settled(ctx, req)
	allowed = decision == verdict.Allow
	if allowed || err != nil {
		return allowed, by, err
	}
	if !a.configured && !a.State.RBACLoaded() {
		return false, by, fmt.Errorf("RBAC decides about this, and there are no roles and bindings in %s", a.State.Origin)
	}
	if lacks := a.Lacking(req, "", a.mayAskRBAC); len(lacks) > 0 {
		return false, by, errors.New((&LackError{lacks}).Error())
	}
	return false, by, nil
}
