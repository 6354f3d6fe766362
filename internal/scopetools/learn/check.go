package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Bounds of a report.
const (
	maxFindings = 10_000
	maxWaiting  = 200_000
)

// Checker says what NodeScopes would have refused of the requests of a log.
//
// A scope decides by the state of the moment, which a log does not have. A request that a scope
// refuses only because nothing shows its pod or its object in the state is undecided, and so is a
// write that passes as the node's if NodeRestriction would have to see the object.
type Checker struct {
	evaluator *evaluate.Evaluator
	objects   []*v1alpha1.NodeScope
	policy    *atomic.Pointer[nodescope.Policy]
	// scopes decides with the state; names does without NodeRestriction, for the names of created
	// objects; withoutAsNode has the rules other than asNode.
	scopes, names, withoutAsNode *nodescope.Authorizer

	pods     map[PodOnNode]bool
	waiting  map[waiting]*counts // for what the whole log shows of their pods
	findings map[findingKey]*counts
	seen     map[string]bool
	requests Counter
	passed   Counter
	already  Counter
	more     Counter
	times
}

type findingKey struct {
	account string
	Finding // without counts and example
}

// waiting is a finding that is a pass if the log shows the pod on the node.
type waiting struct {
	findingKey
	pod PodOnNode
	// otherwise is the outcome if it does not.
	otherwise Outcome
}

type counts struct {
	Counter
	nodes   map[string]bool
	example string
}

// NewChecker returns a checker for scopes of any mode, and a state. The error has everything that is
// not valid in the scopes.
func NewChecker(e *evaluate.Evaluator, scopes []*v1alpha1.NodeScope) (*Checker, error) {
	c := &Checker{
		evaluator: e, objects: scopes, pods: map[PodOnNode]bool{},
		waiting: map[waiting]*counts{}, findings: map[findingKey]*counts{}, seen: map[string]bool{},
	}
	policy, err := compile(scopes)
	if err != nil {
		return nil, err
	}
	copies := make([]*v1alpha1.NodeScope, len(scopes))
	for i, s := range scopes {
		copies[i] = s.DeepCopy()
		copies[i].Spec.AsNode, copies[i].Spec.Otherwise = false, v1alpha1.Deny
	}
	withoutAsNode, err := compile(copies)
	if err != nil {
		return nil, err
	}
	c.policy = policy
	c.scopes = nodescope.New(policy, e.State.Aggregation, e.State.Graph, e.Node, e.Restriction)
	c.names = nodescope.New(policy, e.State.Aggregation, e.State.Graph, e.Node, nil)
	c.withoutAsNode = nodescope.New(withoutAsNode, e.State.Aggregation, e.State.Graph, e.Node, nil)
	return c, nil
}

func compile(objects []*v1alpha1.NodeScope) (*atomic.Pointer[nodescope.Policy], error) {
	var scopes []*nodescope.Scope
	var problems []error
	for _, o := range objects {
		scope, errs := nodescope.Compile(o)
		for _, err := range errs {
			problems = append(problems, fmt.Errorf("NodeScope %s: %w", o.Name, err))
		}
		scopes = append(scopes, scope)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	policy, excess := nodescope.NewPolicy(scopes)
	for _, s := range excess {
		problems = append(problems, fmt.Errorf("NodeScope %s: more than %d scopes are about one of its accounts", s.Name(),
			nodescope.MaxScopes))
	}
	pointer := &atomic.Pointer[nodescope.Policy]{}
	pointer.Store(policy)
	return pointer, errors.Join(problems...)
}

// Concerns reports whether a scope is about an account.
func (c *Checker) Concerns(namespace, name string) bool {
	return len(c.policy.Load().Of(nodeidentity.ServiceAccountUser(namespace, name))) > 0
}

// Pod adds a pod that the log shows on a node.
func (c *Checker) Pod(pod PodOnNode) {
	if len(c.pods) < maxPods {
		c.pods[pod] = true
	}
}

// Request decides a request.
func (c *Checker) Request(r *Request) {
	c.seen[r.AccountNamespace+"/"+r.AccountName] = true
	if r.Refused {
		c.already.Add(r.Begun)
		return
	}
	c.include(times{r.At, r.At})
	c.requests.Add(r.Begun)
	for _, asked := range authorized(r) {
		if !c.decide(r, asked) {
			return
		}
	}
	c.passed.Add(r.Begun)
}

// decide decides one request that the API server authorized, and reports whether it passes.
func (c *Checker) decide(r *Request, asked *access.Request) bool {
	answer := c.scopes.Decide(asked)
	if !answer.Refused() {
		return c.admit(r, asked, answer) && c.servedAsKnown(r, asked, answer)
	}
	f := Finding{Outcome: Refused, Code: answer.Code, Scope: answer.Scope, Rule: answer.Rule, Request: describe(asked, false)}
	key := findingKey{r.AccountNamespace + "/" + r.AccountName, f}
	pod := PodOnNode{Namespace: asked.Namespace, Name: asked.Name, Node: r.Node}
	if c.dependsOnPod(asked, pod, answer) {
		c.waitFor(key, pod, r, asked)
		return false
	}
	if why := c.unknownObject(asked, answer); why != "" {
		key.Outcome, key.Why = Undecided, why
	}
	c.find(key, r, asked)
	return false
}

// servedAsKnown reports whether a request that passes does so whichever server serves its version, or which one does is known.
func (c *Checker) servedAsKnown(r *Request, asked *access.Request, answer nodescope.Answer) bool {
	if answer.Uses&nodescope.UsesAPIServices == 0 {
		return true
	}
	if _, known := c.evaluator.State.Aggregation().Of(asked.Group, asked.Version); known {
		return true
	}
	c.find(findingKey{r.AccountNamespace + "/" + r.AccountName, Finding{
		Outcome: Undecided, Code: nodescope.ScopeAggregatedAPI, Scope: answer.Scope, Rule: answer.Rule,
		Request: describe(asked, false),
		Why:     "whether another API server serves this is not known: add what kubectl get apiservices -o yaml prints with --from",
	}}, r, asked)
	return false
}

// authorized returns the requests that the API server authorized for the account.
func authorized(r *Request) []*access.Request {
	if r.Impersonates == "" {
		return []*access.Request{&r.Request}
	}
	user := nodeidentity.ServiceAccountUser(r.AccountNamespace, r.AccountName)
	req := &access.Request{
		User: user, ResourceRequest: true, Verb: cmp.Or(r.Constraint, "impersonate"), Resource: "users",
		Name: r.Impersonates,
	}
	if r.Node != "" {
		req.Extra = map[string][]string{nodeidentity.ExtraNode: {r.Node}}
	}
	if namespace, name, ok := nodeidentity.ServiceAccount(r.Impersonates); ok {
		req.Resource, req.Namespace, req.Name = "serviceaccounts", namespace, name
	}
	switch r.Constraint {
	case "":
	case "impersonate:associated-node":
		req.Group, req.Resource, req.Name = "authentication.k8s.io", "nodes", "*"
		req.Extra = map[string][]string{nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraNode}}
	default:
		req.Group = "authentication.k8s.io"
	}
	return []*access.Request{req}
}

func (c *Checker) find(key findingKey, r *Request, asked *access.Request) {
	found := c.findings[key]
	if found == nil {
		if len(c.findings) >= maxFindings {
			c.more.Add(r.Begun)
			return
		}
		found = newCounts(r, asked)
		c.findings[key] = found
	}
	found.count(r)
}

// waitFor keeps a finding until the whole log has shown where a pod was.
func (c *Checker) waitFor(key findingKey, pod PodOnNode, r *Request, asked *access.Request) {
	key.Why = "the state does not show the pod: it may have been on the node"
	otherwise := Undecided
	if c.evaluator.State.Graph.Has(graph.Pod, pod.Namespace, pod.Name) {
		otherwise, key.Why = Refused, ""
	}
	wait := waiting{key, pod, otherwise}
	found := c.waiting[wait]
	if found == nil {
		if len(c.waiting) >= maxWaiting {
			key.Outcome, key.Why = Undecided, "the log names too many pods"
			c.find(key, r, asked)
			return
		}
		found = newCounts(r, asked)
		c.waiting[wait] = found
	}
	found.count(r)
}

func newCounts(r *Request, asked *access.Request) *counts {
	example := describe(asked, true)
	if asked.Name == "" && r.CreatedName != "" {
		example += " " + r.CreatedName
	}
	if r.Node != "" {
		example += " from " + r.Node
	}
	return &counts{nodes: map[string]bool{}, example: example}
}

func (c *counts) count(r *Request) {
	c.Add(r.Begun)
	if r.Node != "" && len(c.nodes) < maxNodes {
		c.nodes[r.Node] = true
	}
}

// describe says what is requested, with the object or without.
func describe(req *access.Request, withObject bool) string {
	g := groupOf(req)
	switch {
	case !req.ResourceRequest:
		return req.Verb + " " + req.Path
	case withObject:
		return g.describe(&object{namespace: req.Namespace, name: req.Name})
	}
	return words(g)
}

// admit decides what authorization leaves to admission: the name of a created object, and what
// NodeRestriction says of a write as the node.
func (c *Checker) admit(r *Request, asked *access.Request, answer nodescope.Answer) bool {
	operation := noderestriction.OperationOf(asked.Verb)
	if operation == "" || asked.Verb == "deletecollection" || !asked.ResourceRequest || r.Node == "" || r.Impersonates != "" {
		return true
	}
	key := findingKey{r.AccountNamespace + "/" + r.AccountName, Finding{
		Outcome: Undecided, Scope: answer.Scope, Rule: answer.Rule, Request: describe(asked, false),
	}}
	write := &noderestriction.Request{
		User: asked.User, Groups: asked.Groups, Extra: asked.Extra, Operation: operation, Group: asked.Group, Version: asked.Version,
		Resource: asked.Resource, Subresource: asked.Subresource, Namespace: asked.Namespace, Name: cmp.Or(asked.Name, r.CreatedName),
	}
	if admitted := c.names.Admit(context.Background(), write); admitted.Refused() {
		key.Code, key.Scope, key.Rule = admitted.Code, admitted.Scope, admitted.Rule
		key.Outcome = Refused
		named := admitted.Code == nodescope.ScopeNameNotNode || admitted.Code == nodescope.ScopePodNotOnNode
		pod := PodOnNode{Namespace: write.Namespace, Name: write.Name, Node: r.Node}
		switch {
		case named && write.Name == "":
			key.Outcome, key.Why = Undecided, "the log does not show the name of the created object"
		case named && c.admitsWith(write, pod):
			if c.servedAsKnown(r, asked, answer) {
				c.waitFor(key, pod, r, asked)
			}
			return false
		}
		c.find(key, r, asked)
		return false
	}
	if answer.Uses&nodescope.UsesNodeAuthorizer == 0 || c.evaluator.Node.DecideAs(r.Node, asked).Decision != verdict.Allow {
		return true // asNode does not let it pass
	}
	if other := c.withoutAsNode.Decide(asked); !other.Refused() {
		if admitted := c.withoutAsNode.Admit(context.Background(), write); !admitted.Refused() {
			return true
		}
	}
	user, groups := nodeidentity.User(r.Node)
	asNode := *write
	asNode.User, asNode.Groups, asNode.Extra = user, groups, nil
	_, conditions := c.evaluator.Restriction.Consider(context.Background(), &asNode, noderestriction.Open{
		Object: operation != noderestriction.Delete, OldObject: operation != noderestriction.Create, Name: write.Name == "",
	})
	if len(conditions) == 0 {
		return true
	}
	key.Code, key.Why = nodescope.ScopeNotAsNode, "NodeRestriction decides by the object, which is not taken from the log"
	c.find(key, r, asked)
	return false
}

// dependsOnPod reports whether a refused request passes if the pod that it names is on the node.
func (c *Checker) dependsOnPod(asked *access.Request, pod PodOnNode, answer nodescope.Answer) bool {
	isPod := asked.Group == "" && asked.Resource == "pods"
	if !isPod && answer.Uses&nodescope.UsesPods == 0 || !pod.Complete() {
		return false
	}
	with := c.with(pod).Decide(asked)
	return !with.Refused()
}

// admitsWith reports whether a refused write passes if the pod whose name its object has is on the node.
func (c *Checker) admitsWith(write *noderestriction.Request, pod PodOnNode) bool {
	if !pod.Complete() {
		return false
	}
	with := c.with(pod).Admit(context.Background(), write)
	return !with.Refused()
}

// with returns an authorizer for a cluster that has only one pod.
func (c *Checker) with(pod PodOnNode) *nodescope.Authorizer {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Spec: corev1.PodSpec{NodeName: pod.Node},
	})
	return nodescope.New(c.policy, c.evaluator.State.Aggregation, g, nodeauthz.New(g, c.evaluator.Features), nil)
}

// unknownObject says why the Node authorizer cannot be asked about a request; empty if it can.
func (c *Checker) unknownObject(asked *access.Request, answer nodescope.Answer) string {
	if answer.Uses&nodescope.UsesNodeAuthorizer == 0 || answer.NodeCode != nodeauthz.NoPathToObject {
		return ""
	}
	kind, known := nodeauthz.KindOf(asked.Group, asked.Resource)
	if known && c.evaluator.State.Graph.Has(kind, asked.Namespace, asked.Name) {
		return ""
	}
	return "the state has no pod that needs the object: the node may have had one"
}
