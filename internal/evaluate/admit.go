package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Admission is what NodeRestriction says to a write, with what could turn it.
type Admission struct {
	noderestriction.Answer
	// TooOld is the error of a state that is too old for the answer.
	TooOld error
	// Unread could not be read, and could turn a refusal.
	Unread []source.Missing
	// Lacks are not in the files, and could turn a refusal.
	Lacks []Lack
}

// Admit puts a write to NodeRestriction.
func (e *Evaluator) Admit(ctx context.Context, req *noderestriction.Request) Admission {
	fresh := e.ages.Fresh()
	a := Admission{Answer: e.Restriction.Decide(ctx, req)}
	// What was allowed after an access review may rest on state that was dropped, or
	// became too old, while the API server was asked.
	if !e.ages.Fresh() && (a.Decision != verdict.Allow || fresh) {
		if a.TooOld = e.ages.TooOld(admissionReads(req, a.Code)); a.TooOld != nil {
			return a
		}
	}
	a.Unread, a.Lacks = e.TurnsWrite(req, a.Answer)
	return a
}

// TurnsWrite is what could turn a refusal of NodeRestriction.
func (e *Evaluator) TurnsWrite(req *noderestriction.Request, answer noderestriction.Answer) ([]source.Missing, []Lack) {
	if answer.Decision == verdict.Allow {
		return nil, nil
	}
	on := admissionReads(req, answer.Code)
	if _, own := e.access.(ownAccess); own && asksAuthorizers(answer.Code) && e.mayAskRBAC {
		on |= source.RBACKinds()
	}
	return unread(e.State, on), e.lackingForWrite(req, answer)
}

// ownAccess puts NodeRestriction's own questions to the authorizers. What
// they are about is granted by RBAC or by nobody, so that a state without roles
// and bindings has no answer.
type ownAccess struct{ *Evaluator }

// Authorize implements noderestriction.Authorizer.
func (a ownAccess) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	decision, by, err := a.Chain.Settled(ctx, req)
	allowed = decision == verdict.Allow
	if allowed || err != nil {
		return allowed, by, err
	}
	if !a.configured && !a.State.RBACLoaded() {
		return false, by, fmt.Errorf("RBAC decides about this, and %s has no roles and bindings", a.State.Origin)
	}
	if lacks := a.Lacking(req, "", a.mayAskRBAC); len(lacks) > 0 {
		return false, by, errors.New((&LackError{lacks}).Error())
	}
	return false, by, nil
}
