package noderestriction

import (
	"context"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Open has the parts of a request that are unknown, as in a question before the
// request: may node worker-1 update its Node object, with any content?
type Open struct {
	// Object and OldObject may be any objects of the resource's kind with the name of
	// the request.
	Object, OldObject bool
	// Name and Namespace may be any.
	Name, Namespace bool
}

// Condition is a check that depends on open parts of the request.
type Condition struct {
	// Requires says in words what must hold.
	Requires string `json:"requires"`
	// Of are the open parts of the request that the check reads: object, oldObject,
	// name, namespace. It is empty for a check that reads only results of earlier
	// checks.
	Of []string `json:"of,omitempty"`
	// OwnName is true for a check that only passes for the node's own name.
	OwnName bool `json:"ownName,omitempty"`
}

// Consider decides a request with open parts, as far as the known parts and the state
// allow. Deny means that NodeRestriction refuses the request for any open parts; the
// code belongs to a check that always fails, although an earlier check may fail
// first. Allow with conditions means that it allows exactly the requests that meet
// all conditions; their code is RestrictionsMet. Allow without conditions means that
// it allows all of them.
//
// It makes the same checks as [Restriction.Decide]. If nothing is open, it answers
// like Decide.
func (r *Restriction) Consider(ctx context.Context, req *Request, open Open) (Answer, []Condition) {
	var conditions []Condition
	answer := r.consider(ctx, req, open, &conditions)
	return answer, conditions
}

// MayAllow reports whether the decision of [Restriction.Consider] is Allow. It does not list the
// conditions, and so takes less time.
func (r *Restriction) MayAllow(ctx context.Context, req *Request, open Open) bool {
	answer := r.consider(ctx, req, open, nil)
	return answer.Decision == verdict.Allow
}

// consider appends the conditions of an allowed request unless conditions is nil.
func (r *Restriction) consider(ctx context.Context, req *Request, open Open, conditions *[]Condition) Answer {
	rule, node, answer := r.find(req)
	if rule == nil {
		return answer
	}
	q := &question{Restriction: r, ctx: ctx, req: req, node: node}
	synced := r.synced()
	var found []Condition
	for i := range rule.checks {
		c := &rule.checks[i]
		refusal, unknown := c.consider(q, open)
		switch {
		case unknown != 0 && conditions != nil:
			found = append(found, Condition{Requires: c.says, Of: unknown.names(), OwnName: c.ownName})
		case refusal != nil:
			return refusal.settled(synced).answer(node, c.title)
		}
	}
	if conditions != nil {
		*conditions = found
	}
	return allow(RestrictionsMet, node, rule.title)
}

// consider decides the check, or returns the unknown inputs.
func (c *check) consider(q *question, open Open) (r *refusal, unknown inputs) {
	unknown = c.reads &^ q.known(open)
	if unknown == 0 {
		return c.holds(q), 0
	}
	if a := c.instead; a != nil && a.reads&^q.known(open) == 0 {
		if r, known := a.holds(q); known {
			return r, 0
		}
	}
	return nil, unknown
}

// known returns the inputs that are known so far.
func (q *question) known(open Open) inputs {
	var known inputs
	add := func(input inputs, isKnown bool) {
		if isKnown {
			known |= input
		}
	}
	add(theObject, !open.Object)
	add(theOldObject, !open.OldObject)
	add(theName, !open.Name)
	add(theNamespace, !open.Namespace)
	add(thePod, q.pod != nil)
	add(theCertificate, q.certificate != nil)
	return known
}

// names returns the parts of the request among the inputs.
func (in inputs) names() []string {
	var names []string
	for _, part := range []struct {
		input inputs
		name  string
	}{{theObject, "object"}, {theOldObject, "oldObject"}, {theName, "name"}, {theNamespace, "namespace"}} {
		if in&part.input != 0 {
			names = append(names, part.name)
		}
	}
	return names
}
