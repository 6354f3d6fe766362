package noderestriction

import "context"

// Open says which parts of a request are not known, as in a question that comes
// before the request: may node worker-1 update its Node object, whatever it
// writes?
type Open struct {
	// Object and OldObject stand for any objects of the resource's kind that have
	// the name of the request.
	Object, OldObject bool
	// Name and Namespace are those of any object.
	Name, Namespace bool
}

// Condition is a check that depends on what is open.
type Condition struct {
	// Requires is what must hold, as in [Restriction.Checks].
	Requires string `json:"requires"`
	// Of are the parts of the request that the check looks at and that are open:
	// object, oldObject, name, namespace. It is empty for a check of what an
	// earlier check finds.
	Of []string `json:"of,omitempty"`
	// OwnName is true for a check that only what has the node's own name passes.
	OwnName bool `json:"ownName,omitempty"`
}

// Consider answers a request of which parts are open, as far as the rest of the
// request and the state decide. Deny means that NodeRestriction refuses the request
// whatever the open parts are, and the code is that of the check that fails in any
// case; another check may come before it. Allow with conditions means that it allows
// those requests that meet all of the conditions, and no others; the code is then
// RestrictionsMet, which is what they get. Without conditions it allows all.
//
// It puts the request to the same checks as [Restriction.Decide]. With nothing open,
// the answer is that of Decide.
func (r *Restriction) Consider(ctx context.Context, req *Request, open Open) (Answer, []Condition) {
	rule, node, answer := r.find(req)
	if rule == nil {
		return answer, nil
	}
	q := &question{Restriction: r, ctx: ctx, req: req, node: node}
	var conditions []Condition
	for i := range rule.checks {
		c := &rule.checks[i]
		refusal, unknown := c.consider(q, open)
		switch {
		case unknown != 0:
			conditions = append(conditions, Condition{Requires: c.says, Of: unknown.names(), OwnName: c.ownName})
		case refusal != nil:
			return refusal.answer(node, c.title), nil
		}
	}
	return allow(RestrictionsMet, node, rule.title), conditions
}

// consider decides the check, or returns what it would have to know.
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

// known is what checks can look at by now.
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
