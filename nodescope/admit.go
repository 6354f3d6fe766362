package nodescope

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Webhook is the name of the mutating webhook that asks node-authorizer about writes of scoped accounts, and with
// Quarantines about writes of nodes. "node-authorizer scope authorization-config" writes it.
const Webhook = "containment.node-authorizer.io"

// Admission is the result of Admit.
type Admission struct {
	Answer
	// Restriction is the answer of NodeRestriction for the node itself, if it was asked and refuses.
	// It says whether an error or old state is the reason.
	Restriction *noderestriction.Answer
}

// Admit decides a write, by the same rules. It knows the name of an object that is created, and
// whether NodeRestriction would let the node make the write. It does not see the verb: an update may
// be a patch, and a deletion one of a collection. It relies on authorization for that, and for field
// selectors.
func (a *Authorizer) Admit(ctx context.Context, req *noderestriction.Request) Admission {
	account, namespace := a.policy.Load().of(req.User)
	if len(account)+len(namespace) == 0 {
		return Admission{Answer: Answer{Decision: verdict.NoOpinion, Code: NotInScope}}
	}
	w := &write{ctx: ctx, req: req, verbs: req.Operation.Verbs()}
	q := question{Authorizer: a, req: w.request(), write: w}
	q.node, q.ambiguous = nodeidentity.TokenNode(req.Extra)
	return Admission{Answer: q.decide(account, namespace), Restriction: w.restriction}
}

// Reads reports which objects of a write Admit reads, so that a caller need not decode the others.
// Req needs no objects. An object is not read for its name: API servers send the name of a new object with
// the write, and a generated name is never the name of the node.
func (a *Authorizer) Reads(req *noderestriction.Request) (object, oldObject bool) {
	account, namespace := a.policy.Load().of(req.User)
	if len(account)+len(namespace) == 0 {
		return false, false
	}
	node, ambiguous := nodeidentity.TokenNode(req.Extra)
	if node == "" || ambiguous {
		return false, false
	}
	if a.restriction != nil && (haveAsNode(account) || haveAsNode(namespace)) {
		object, oldObject = a.restriction.Reads(writtenByNode(node, req))
	}
	return object, oldObject
}

func haveAsNode(scopes []*Scope) bool {
	for _, s := range scopes {
		if len(s.rules) > 0 && s.rules[0].kind == asNode {
			return true
		}
	}
	return false
}

// writtenByNode returns the write as if the node had made it.
func writtenByNode(node string, req *noderestriction.Request) *noderestriction.Request {
	as := *req
	as.User, as.Groups = nodeidentity.User(node)
	as.UID, as.Extra = "", nil
	return &as
}

// write is a write that is being decided.
type write struct {
	ctx context.Context
	req *noderestriction.Request
	// verbs are the verbs that the write may have been authorized with.
	verbs       []string
	restriction *noderestriction.Answer
}

// request returns the write as a request without a verb.
func (w *write) request() *access.Request {
	req := &access.Request{
		User: w.req.User, UID: w.req.UID, Groups: w.req.Groups, Extra: w.req.Extra, ResourceRequest: true,
		Group: w.req.Group, Version: w.req.Version, Resource: w.req.Resource, Subresource: w.req.Subresource,
		Namespace: w.req.Namespace, Name: w.req.Name,
	}
	if req.Name == "" && w.req.Object != nil {
		if object, err := meta.Accessor(w.req.Object); err == nil {
			req.Name = object.GetName()
		}
	}
	return req
}

// covered reports whether a rule names the write with one of its verbs.
func (w *write) covered(r *rule, req *access.Request) bool {
	asked := *req
	for _, asked.Verb = range w.verbs {
		if r.kind == selectsNode && asked.Verb != "deletecollection" {
			continue
		}
		if r.covers(&asked) {
			return true
		}
	}
	return false
}

func (w *write) checkAsNode(q *question) (named, passes bool) {
	asked := *q.req
	q.uses |= UsesNodeAuthorizer
	for _, asked.Verb = range w.verbs {
		answer := q.Authorizer.node.DecideAs(q.node, &asked)
		q.nodeCode = answer.Code
		named = named || namesResource(answer.Code)
		if answer.Decision == verdict.Allow {
			return true, w.restricted(q)
		}
	}
	return named, false
}

// restricted reports whether NodeRestriction lets the node make the write.
func (w *write) restricted(q *question) bool {
	if q.restriction == nil {
		return true
	}
	q.uses |= UsesNodeRestriction
	answer := q.restriction.Decide(w.ctx, writtenByNode(q.node, w.req))
	if answer.Decision == verdict.Allow {
		return true
	}
	w.restriction = &answer
	return false
}
