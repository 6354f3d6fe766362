package evaluate

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
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

// containWrite asks the Quarantines and the NodeScopes about a write. If they do not refuse it, decided
// is false, and the Admission has at most what a NodeScope observes.
func (e *Evaluator) containWrite(ctx context.Context, req *noderestriction.Request) (a Admission, decided bool) {
	c := &e.containment
	asked := requestOf(req)
	if c.Quarantines != nil && mayBeQuarantined(asked) {
		set, err := c.Quarantines()
		if err != nil && !c.Self(req.User) {
			return Admission{Contained: err}, true
		}
		if err != nil {
			set = nil
		}
		if answer := quarantinedWrite(set, asked, req.Operation, c); answer.Decision == verdict.Deny {
			return refusedWrite(answer.Node, answer.Code, quarantine.Summary(answer.Code), false), true
		}
	}
	if e.Scopes == nil {
		return Admission{}, false
	}
	return e.scopeWrite(ctx, req, asked)
}

// requestOf returns a write as a request without a verb.
func requestOf(req *noderestriction.Request) *access.Request {
	return &access.Request{
		User: req.User, UID: req.UID, Groups: req.Groups, Extra: req.Extra, ResourceRequest: true, Group: req.Group,
		Version: req.Version, Resource: req.Resource, Subresource: req.Subresource, Namespace: req.Namespace, Name: req.Name,
	}
}

// quarantinedWrite decides a write with each verb that it may have been authorized with. Authorization has
// decided by the one that it was.
func quarantinedWrite(
	set *quarantine.Set, asked *access.Request, operation noderestriction.Operation, c *Containment,
) (answer quarantine.Answer) {
	now := c.Now()
	for _, asked.Verb = range operation.Verbs() {
		if answer = set.Decide(asked, now); answer.Decision != verdict.Deny {
			break
		}
	}
	return answer
}

func (e *Evaluator) scopeWrite(
	ctx context.Context, req *noderestriction.Request, asked *access.Request,
) (a Admission, decided bool) {
	switch known, err := e.scopesKnown(req.User); {
	case err != nil:
		return Admission{Contained: err}, true
	case !known:
		return Admission{}, false
	}
	answer := e.Scopes.Admit(ctx, req)
	if answer.Code == nodescope.NotInScope {
		return Admission{}, false
	}
	if a, undecided := e.scopeWriteUndecided(req, asked, &answer); undecided {
		return a, true
	}
	if !answer.Refused() || e.observedUndecided(asked, &answer.Answer, writeReads(req, asked, &answer, answer.Uses)) {
		return Admission{}, false
	}
	asked.Verb = "write"
	refusal := refusalOf(asked, answer.Answer)
	if answer.Decision != verdict.Deny {
		return Admission{Scope: refusal}, false
	}
	stale := awaitsPod(asked, &answer.Answer) || answer.Restriction != nil && answer.Restriction.Stale
	a = refusedWrite(answer.Node, answer.Code, nodescope.Summary(answer.Code), stale)
	a.Rule, a.Scope = answer.Scope+" "+answer.Rule, refusal
	return a, true
}

// scopeWriteUndecided returns why a write cannot be decided: state that is too old or missing, or an
// error of NodeRestriction.
func (e *Evaluator) scopeWriteUndecided(
	req *noderestriction.Request, asked *access.Request, answer *nodescope.Admission,
) (a Admission, undecided bool) {
	if !e.ages.Fresh() {
		if err := e.ages.TooOld(writeReads(req, asked, answer, answer.EnforcedUses)); err != nil {
			return Admission{TooOld: err}, true
		}
	}
	if answer.Decision != verdict.Deny {
		return Admission{}, false
	}
	if answer.Restriction != nil && answer.Restriction.Err != nil {
		return Admission{Contained: answer.Restriction.Err}, true
	}
	var on source.Kinds
	if answer.Restriction != nil {
		on = admissionReads(req, answer.Restriction.Code)
	}
	on |= scopeReads(asked, &answer.Answer, answer.EnforcedUses)
	_ = e.State.Probe(on) // the state keeps the error
	if missing := unread(e.State, on); len(missing) > 0 {
		return Admission{Unread: missing}, true
	}
	if lacks := e.scopeLacks(asked, &answer.Answer); len(lacks) > 0 {
		return Admission{Lacks: lacks}, true
	}
	return Admission{}, false
}

// writeReads returns the kinds of a part of the state on which the answer to a write depends.
func writeReads(
	req *noderestriction.Request, asked *access.Request, answer *nodescope.Admission, uses nodescope.Uses,
) source.Kinds {
	on := scopeReads(asked, &answer.Answer, uses)
	if uses&nodescope.UsesNodeRestriction != 0 {
		on |= checkedKinds(req)
	}
	return on
}

func refusedWrite(node string, code verdict.Code, message string, stale bool) Admission {
	return Admission{Answer: noderestriction.Answer{
		Decision: verdict.Deny, Code: code, Node: node, Status: http.StatusForbidden, StatusReason: metav1.StatusReasonForbidden,
		Reason: verdict.Reason{Code: code, Message: message}, Stale: stale,
	}}
}
