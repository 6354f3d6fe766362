package nodescope

import (
	"cmp"
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorizer decides by the current policy. It is safe for concurrent use.
type Authorizer struct {
	policy      *atomic.Pointer[Policy]
	aggregation func() *Aggregation
	graph       *graph.Graph
	node        *nodeauthz.Authorizer
	restriction *noderestriction.Restriction
}

// New returns an authorizer over the graph that the Node authorizer uses. The policy may be replaced at
// any time; a nil policy has no scopes. Aggregation is called for each request that depends on it; nil means that
// kube-apiserver passes no requests on to other API servers.
func New(
	policy *atomic.Pointer[Policy], aggregation func() *Aggregation, g *graph.Graph, node *nodeauthz.Authorizer,
	restriction *noderestriction.Restriction,
) *Authorizer {
	if aggregation == nil {
		none := &Aggregation{Complete: true}
		aggregation = func() *Aggregation { return none }
	}
	return &Authorizer{policy: policy, aggregation: aggregation, graph: g, node: node, restriction: restriction}
}

// Policy returns the current policy; nil if there is none.
func (a *Authorizer) Policy() *Policy { return a.policy.Load() }

// Answer is the result of Decide.
type Answer struct {
	// Decision is Deny, or NoOpinion.
	Decision verdict.Decision `json:"decision"`
	// Code is the code of a refusal by a scope in any mode, or says that no scope refuses.
	Code verdict.Code `json:"code"`
	// Node is the node of the token; empty if there is none.
	Node string `json:"node,omitempty"`
	// Scope and Mode are the name and mode of the NodeScope that refuses or, in the mode Observe, would refuse. If
	// all pass, they are the name and mode of the oldest scope.
	Scope string        `json:"scope,omitempty"`
	Mode  v1alpha1.Mode `json:"mode,omitempty"`
	// Rule is the rule that the request passed, or the first that names it and refuses:
	// "namedAsNode[0]". Empty if no rule names the request.
	Rule string `json:"rule,omitempty"`
	// NodeCode is the answer of the Node authorizer for the node itself, if it was asked.
	NodeCode verdict.Code `json:"nodeCode,omitempty"`
	// Uses is the state that the answer depends on, a pass included, and EnforcedUses the part of it that
	// scopes in the mode Enforce depend on, so that the decision does.
	Uses         Uses `json:"-"`
	EnforcedUses Uses `json:"-"`

	rule *rule
}

// Refused reports whether a scope refuses the request, or would in the mode Enforce.
func (a *Answer) Refused() bool { return a.Code != NotInScope && a.Code != ScopePassed }

// Decide decides one request.
func (a *Authorizer) Decide(req *access.Request) Answer {
	account, namespace := a.policy.Load().of(req.User)
	if len(account)+len(namespace) == 0 {
		return Answer{Decision: verdict.NoOpinion, Code: NotInScope}
	}
	q := question{Authorizer: a, req: req, asks: nodeidentity.AsksForAssociatedNode(req.Verb, req.Extra)}
	if !q.asks {
		q.node, q.ambiguous = nodeidentity.TokenNode(req.Extra)
	}
	return q.decide(account, namespace)
}

// question is a request that is being decided.
type question struct {
	*Authorizer
	req *access.Request
	// node is the node of the token.
	node      string
	ambiguous bool
	// asks is true for a request that asks for the impersonation of the own node.
	asks bool
	// write is the write that admission asks about; nil in authorization.
	write *write

	// uses is the state that the asked scopes depend on, and enforced the part that enforcing scopes depend on.
	uses, enforced Uses
	nodeCode       verdict.Code
}

// decide asks all scopes. The first one that refuses in the mode Enforce decides; otherwise the first
// one that would refuse is in the answer.
func (q *question) decide(lists ...[]*Scope) Answer {
	answer := Answer{Decision: verdict.NoOpinion, Code: ScopePassed, Node: q.node}
	for _, scopes := range lists {
		for _, s := range scopes {
			code, r := q.askNoting(s)
			if code != ScopePassed && s.mode == v1alpha1.Enforce {
				answer.set(verdict.Deny, code, s, r)
				return q.complete(answer)
			}
			if answer.Scope == "" || code != ScopePassed && answer.Code == ScopePassed {
				answer.set(verdict.NoOpinion, code, s, r)
			}
		}
	}
	return q.complete(answer)
}

func (q *question) complete(answer Answer) Answer {
	answer.Uses, answer.EnforcedUses, answer.NodeCode = q.uses, q.enforced, q.nodeCode
	return answer
}

// askNoting asks one scope, and notes what its answer depends on if it enforces.
func (q *question) askNoting(s *Scope) (verdict.Code, *rule) {
	before := q.uses
	q.uses = 0
	code, r := q.ask(s)
	if s.mode == v1alpha1.Enforce {
		q.enforced |= q.uses
	}
	q.uses |= before
	return code, r
}

func (a *Answer) set(decision verdict.Decision, code verdict.Code, s *Scope, r *rule) {
	a.Decision, a.Code, a.Scope, a.Mode, a.rule, a.Rule = decision, code, s.name, s.mode, r, ""
	if r != nil {
		a.Rule = r.name
	}
}

// ask returns the code of one scope, and the rule that the request passes, or the first that names it.
func (q *question) ask(s *Scope) (verdict.Code, *rule) {
	switch {
	case s.broken:
		return ScopeInvalid, nil
	case q.ambiguous:
		return ScopeTokenNodeAmbiguous, nil
	case q.asks:
		return q.askForNode(s)
	case q.node == "" && s.withoutNode == v1alpha1.Allow:
		return ScopePassed, nil
	case q.node == "":
		return ScopeTokenWithoutNode, nil
	}
	var refuses, relies *rule
	server := unasked
	for i := range s.rules {
		r := &s.rules[i]
		switch named, passes := q.check(r); {
		case passes && q.write == nil && r.reliesOnServer(q.req):
			if server = q.servedBy(); server == kubeAPIServer {
				return ScopePassed, r
			}
			relies = cmp.Or(relies, r)
		case passes:
			q.uses &^= UsesAPIServices // it passes whichever server serves it
			return ScopePassed, r
		case named && (refuses == nil || refuses.kind == asNode): // the others say more
			refuses = r
		}
	}
	switch {
	case server == extension:
		return ScopeAggregatedAPI, relies
	case server == unknownServer:
		return ScopePassed, relies
	case refuses != nil:
		return refuses.info().refused, refuses
	case s.otherwise == v1alpha1.Allow:
		return ScopePassed, nil
	}
	return ScopeNoRule, nil
}

// askForNode answers whether an account may impersonate the node of its token.
func (q *question) askForNode(s *Scope) (verdict.Code, *rule) {
	if len(s.rules) > 0 && s.rules[0].kind == asNode {
		return ScopePassed, &s.rules[0]
	}
	if s.otherwise == v1alpha1.Allow {
		return ScopePassed, nil
	}
	return ScopeNoRule, nil
}

// check reports whether a rule names a request, and whether the request is as the rule requires.
func (q *question) check(r *rule) (named, passes bool) {
	if r.kind == asNode {
		return q.checkAsNode()
	}
	if !q.covered(r) {
		return false, false
	}
	if r.info().byName && q.createsUnnamed(r) {
		return true, true
	}
	q.uses |= r.info().uses
	switch r.kind {
	case anywhere:
		return true, true
	case namedAsNode:
		return true, q.req.Name == q.node
	case selectsNode:
		return true, q.selects(r.field)
	case podsOnNode, namedAsPod:
		return true, q.req.Name != "" && q.req.Namespace != "" &&
			q.graph.HasPath(q.node, graph.Pod, q.req.Namespace, q.req.Name)
	}
	return true, false
}

func (q *question) covered(r *rule) bool {
	if q.write != nil {
		return q.write.covered(r, q.req)
	}
	return r.covers(q.req)
}

// createsUnnamed reports whether a request creates an object whose name decides. An authorizer does not
// know the name; admission does. A pod that is created is not on the node yet, so that its name does not decide.
func (q *question) createsUnnamed(r *rule) bool {
	if q.write != nil || q.req.Verb != "create" || q.req.Name != "" || q.req.Subresource != "" {
		return false
	}
	return r.kind != namedAsPod || q.req.Namespace != "" && !isPods(q.req.Group, q.req.Resource)
}

// selects reports whether a field selector limits the request to the node. Admission does not see the
// selector of a deletecollection, which authorization has checked.
func (q *question) selects(field string) bool {
	if q.write != nil {
		return true
	}
	for i := range q.req.FieldSelector {
		r := &q.req.FieldSelector[i]
		if r.Field == field && r.Operator == selection.Equals && r.Value == q.node {
			return true
		}
	}
	return false
}

// checkAsNode asks the Node authorizer and, about a write, NodeRestriction. The rule names what the
// Node authorizer has rules for.
func (q *question) checkAsNode() (named, passes bool) {
	if q.write != nil {
		return q.write.checkAsNode(q)
	}
	q.uses |= UsesNodeAuthorizer
	answer := q.Authorizer.node.DecideAs(q.node, q.req)
	q.nodeCode = answer.Code
	if answer.Decision != verdict.Allow {
		return namesResource(answer.Code), false
	}
	operation := noderestriction.OperationOf(q.req.Verb)
	if operation == "" || q.restriction == nil {
		return true, true
	}
	q.uses |= UsesNodeRestriction
	open := noderestriction.Open{Object: true, OldObject: true, Name: q.req.Name == ""}
	return true, q.restriction.MayAllow(context.Background(), asNodeWrites(q.node, operation, q.req), open)
}

// namesResource reports whether the Node authorizer has a rule for the resource and the verb.
func namesResource(code verdict.Code) bool {
	switch code {
	case nodeauthz.NoRuleForResource, nodeauthz.SubresourceNotAllowed, nodeauthz.VerbNotAllowed, nodeauthz.FeatureDisabled:
		return false
	}
	return true
}

// asNodeWrites returns the write that the node itself would make.
func asNodeWrites(node string, operation noderestriction.Operation, req *access.Request) *noderestriction.Request {
	user, groups := nodeidentity.User(node)
	return &noderestriction.Request{
		User: user, Groups: groups, Operation: operation, Group: req.Group, Version: req.Version,
		Resource: req.Resource, Subresource: req.Subresource, Namespace: req.Namespace, Name: req.Name,
	}
}
