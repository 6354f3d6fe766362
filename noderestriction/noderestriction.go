package noderestriction

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Restriction is NodeRestriction of one cluster. It is safe for concurrent use
// if its state and authorizer are.
type Restriction struct {
	state      State
	authorizer Authorizer
	features   kubeversion.Features
	table      ruleTable
	syncing    Syncing // nil if the state does not implement it
}

// ErrNotSynced is the error of an answer that depends on objects which have not been read yet.
var ErrNotSynced = errors.New("the state of the cluster has not synced yet: retry")

// New returns the restriction over a state, with the behaviour of the given version
// and gates. The authorizer decides about audiences and signers that a pod does not
// use; nil grants none.
func New(state State, authorizer Authorizer, features kubeversion.Features) *Restriction {
	syncing, _ := state.(Syncing)
	return &Restriction{state: state, authorizer: authorizer, features: features, table: newRuleTable(features), syncing: syncing}
}

// Answer is the result of Decide.
type Answer struct {
	// Decision is Allow or Deny.
	Decision verdict.Decision `json:"decision"`
	// Code equals the code of Reason.
	Code verdict.Code `json:"code"`
	// Node is the requesting node; empty if the user is not a node.
	Node string `json:"node,omitempty"`
	// Rule is the rule of the request, for people, and the check that failed: "update
	// nodes/status: taints do not change". Empty if there is none.
	Rule string `json:"rule,omitempty"`
	// Status is the HTTP status with which Kubernetes answers: 200, 403, 404, or
	// 500 when the client should try again.
	Status int `json:"status"`
	// StatusReason is the reason of Status as Kubernetes names it, such as Forbidden; empty for 200 and 500.
	StatusReason metav1.StatusReason `json:"statusReason,omitempty"`
	// Reason says why. Its message and hint may be shown to the node that asked.
	Reason verdict.Reason `json:"reason"`
	// Stale is true for a refusal that a state that lags behind the API server could
	// cause.
	Stale bool `json:"stale,omitempty"`
	// Err is the error if a refusal is due to a missing answer: the driver of a
	// volume could not be found, an authorizer failed, or the state has not synced. It
	// is for logs, not for the node.
	Err error `json:"-"`
}

// Decide decides one request.
func (r *Restriction) Decide(ctx context.Context, req *Request) Answer {
	rule, node, answer := r.find(req)
	if rule == nil {
		return answer
	}
	q := &question{Restriction: r, ctx: ctx, req: req, node: node}
	synced := r.synced()
	for i := range rule.checks {
		if refusal := rule.checks[i].holds(q); refusal != nil {
			return refusal.settled(synced).answer(node, rule.checks[i].title)
		}
	}
	return allow(RestrictionsMet, node, rule.title)
}

// synced must be called before the state is read: what is read earlier may be missing.
func (r *Restriction) synced() bool { return r.syncing == nil || r.syncing.HasSynced() }

// find returns the rule of a request and the requesting node, or the answer to a
// request without a rule.
func (r *Restriction) find(req *Request) (rule *activeRule, node string, without Answer) {
	identity := nodeidentity.Of(req.User, req.Groups)
	switch {
	case !identity.IsNode:
		return nil, "", allow(NotANode, "", "")
	case req.Operation == Connect:
		return nil, "", allow(NotRestricted, identity.Name, "")
	case identity.Name == "":
		return nil, "", unnamedNode(req).answer("", "")
	}
	operation := operationOf(req.Operation)
	if operation == 0 {
		return nil, "", unknownOperation(req).answer(identity.Name, "")
	}
	rule = r.table.find(req.Group, req.Resource, req.Subresource, operation)
	if rule == nil {
		return nil, "", allow(NotRestricted, identity.Name, "")
	}
	return rule, identity.Name, Answer{}
}

// Reads reports which objects of a request the rules read, so that a caller need not
// decode the others. It needs all fields of the request except the objects.
func (r *Restriction) Reads(req *Request) (object, oldObject bool) {
	rule := r.ruleFor(req)
	if rule == nil {
		return false, false
	}
	return rule.reads&theObject != 0, rule.reads&theOldObject != 0
}

// Checks lists the checks of a request, one line each, in their order. It needs all
// fields of the request except the objects. It is empty for requests that are not
// restricted.
func (r *Restriction) Checks(req *Request) []string {
	rule := r.ruleFor(req)
	if rule == nil {
		return nil
	}
	lines := make([]string, len(rule.checks))
	for i := range rule.checks {
		lines[i] = rule.checks[i].says
	}
	return lines
}

// ruleFor returns the rule for a request of a named node, nil if there is none.
func (r *Restriction) ruleFor(req *Request) *activeRule {
	if nodeidentity.Of(req.User, req.Groups).Name == "" {
		return nil
	}
	return r.table.find(req.Group, req.Resource, req.Subresource, operationOf(req.Operation))
}

// question is a request that is being decided.
type question struct {
	*Restriction
	ctx  context.Context
	req  *Request
	node string
	// pod and certificate are results of earlier checks of the rule.
	pod         *corev1.Pod
	certificate *certificateSpec
}
