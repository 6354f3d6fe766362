package nodeauthz

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorizer is the Node authorizer of one cluster. It is safe for concurrent
// use.
type Authorizer struct {
	graph    *graph.Graph
	features kubeversion.Features
	table    ruleTable
	options  options
	synced   atomic.Bool // options.synced has returned true
}

// New returns the authorizer over a graph, with the behaviour of the given
// version and gates.
func New(g *graph.Graph, features kubeversion.Features, opts ...Option) *Authorizer {
	a := &Authorizer{graph: g, features: features, table: newRuleTable(features)}
	for _, opt := range opts {
		opt(&a.options)
	}
	return a
}

// Answer is the result of Decide: a decision, the code of its reason, and the
// requesting node (empty if it is not a node).
type Answer struct {
	Decision verdict.Decision `json:"decision"`
	Code     verdict.Code     `json:"code"`
	Node     string           `json:"node,omitempty"`

	entry *entry
	rule  *rule
}

// Decide decides one request. It allocates nothing and takes no lock.
func (a *Authorizer) Decide(req *access.Request) Answer {
	decision, code, node, e, r := a.decide(req)
	return Answer{Decision: decision, Code: code, Node: node, entry: e, rule: r}
}

// DecideAs decides a request as if the named node had made it, for any user.
func (a *Authorizer) DecideAs(node string, req *access.Request) Answer {
	decision, code, e, r := a.decideFor(node, req)
	return Answer{Decision: decision, Code: code, Node: node, entry: e, rule: r}
}

// decide is Decide with results in registers: for requests without a graph look-up,
// copying an Answer takes as long as everything else.
func (a *Authorizer) decide(req *access.Request) (verdict.Decision, verdict.Code, string, *entry, *rule) {
	identity := nodeidentity.Of(req.User, req.Groups)
	switch {
	case !identity.IsNode:
		return verdict.NoOpinion, NotANode, "", nil, nil
	case identity.Name == "":
		return verdict.NoOpinion, UnnamedNode, "", nil, nil
	}
	decision, code, e, r := a.decideFor(identity.Name, req)
	return decision, code, identity.Name, e, r
}

func (a *Authorizer) decideFor(node string, req *access.Request) (verdict.Decision, verdict.Code, *entry, *rule) {
	if !req.ResourceRequest {
		return verdict.NoOpinion, NoRuleForResource, nil, nil
	}
	e := a.table.find(req.Group, req.Resource)
	if e == nil {
		return verdict.NoOpinion, NoRuleForResource, nil, nil
	}
	r, code := e.match(req.Subresource, verb(req.Verb))
	if r == nil {
		return verdict.NoOpinion, code, e, nil
	}
	decision, code := a.check(e.resource, r.condition, node, req)
	return decision, code, e, r
}

// check evaluates a rule's condition.
func (a *Authorizer) check(r *resource, c condition, node string, req *access.Request) (verdict.Decision, verdict.Code) {
	switch c {
	case granted:
		return verdict.Allow, GrantedToNodes
	case related:
		return a.checkRelated(r, node, req)
	case ownName:
		return checkOwnName(r, node, req)
	case selected:
		return checkSelected(node, req)
	case selectedOrRelated:
		if decision, code := checkSelected(node, req); decision == verdict.Allow || req.Name == "" {
			return decision, code
		}
		return a.checkRelated(r, node, req)
	}
	return checkLease(c, node, req)
}

func (a *Authorizer) checkRelated(r *resource, node string, req *access.Request) (verdict.Decision, verdict.Code) {
	switch {
	case req.Name == "":
		return verdict.NoOpinion, NameRequired
	case req.Namespace == "" && !r.clusterScoped:
		return verdict.NoOpinion, NamespaceRequired
	case a.hasPath(node, r.kind, req.Namespace, req.Name):
		return verdict.Allow, PathToObject
	case req.Namespace != "" && r.clusterScoped:
		return verdict.NoOpinion, ClusterScoped
	}
	return verdict.NoOpinion, NoPathToObject
}

func checkOwnName(r *resource, node string, req *access.Request) (verdict.Decision, verdict.Code) {
	switch {
	case req.Name == node:
		return verdict.Allow, OwnName
	case r.group == storage:
		return verdict.NoOpinion, NotOwnCSINode
	}
	return verdict.NoOpinion, NotOwnNode
}

func checkSelected(node string, req *access.Request) (verdict.Decision, verdict.Code) {
	for i := range req.FieldSelector {
		r := &req.FieldSelector[i]
		if r.Field == nodeNameField && r.Operator == selection.Equals && r.Value == node {
			return verdict.Allow, OwnFieldSelector
		}
	}
	return verdict.NoOpinion, FieldSelectorRequired
}

func checkLease(c condition, node string, req *access.Request) (verdict.Decision, verdict.Code) {
	switch {
	case req.Namespace != leasesNamespace:
		return verdict.NoOpinion, NotLeaseNamespace
	case c == leaseNamespace:
		return verdict.Allow, GrantedToNodes
	case req.Name == node:
		return verdict.Allow, OwnName
	}
	return verdict.NoOpinion, NotOwnLease
}
