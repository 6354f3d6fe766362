package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Evaluators answer the requests of a log.
type Evaluators struct {
	*evaluate.Evaluator
	// Missing, if set, describes the missing state that might have allowed a request about
	// which the chain has no opinion; empty if nothing is missing.
	Missing func(req *access.Request, result chain.Result) string
	// Extra is true if an authorizer reads the extra fields of a user.
	Extra bool
}

const systemNode = "system:node"

// LeaveOutSystemNode removes the bindings of the ClusterRole system:node to the group
// system:nodes from a policy, and returns their names. They date from before the Node
// authorizer and give every node the rights that each node needs for its own pods.
func LeaveOutSystemNode(policy *rbac.Policy) []string {
	grants, _ := policy.Grants("", []string{nodeidentity.Group}) // bindings without a role grant nothing
	var left []string
	for _, g := range grants {
		if g.Role.Kind != "ClusterRole" || g.Role.Name != systemNode {
			continue
		}
		if g.Binding.Namespace == "" {
			policy.DeleteClusterRoleBinding(g.Binding.Name)
		} else {
			policy.DeleteRoleBinding(g.Binding.Namespace, g.Binding.Name)
		}
		name := g.Binding.Kind + " " + g.Binding.Name
		if g.Binding.Namespace != "" {
			name = g.Binding.Kind + " " + g.Binding.Namespace + "/" + g.Binding.Name
		}
		if !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// answer is the evaluators' answer to one request.
type answer struct {
	// refusedBy is who refuses; empty if the request is allowed.
	refusedBy string
	code      verdict.Code
	// reason is set if it cannot be derived from the code.
	reason verdict.Reason
	// err is set if the request could not be decided.
	err error
	// caveat is set if another state could change a refusal.
	caveat Caveat
	// unexamined is why NodeRestriction could not examine a write; empty if it could, or
	// if no rule applies. examined is true if it examined the write.
	unexamined Unexamined
	examined   bool
}

func (ev *Evaluators) authorize(ctx context.Context, req *request, by who) answer {
	result, _ := ev.Chain.Brief(ctx, req) // the opinions hold the errors
	switch why := result.Doubt(); {
	case why != "":
		return answer{err: errors.New(why)}
	case result.Decision == verdict.Allow:
		return answer{}
	case result.DecidedBy != "":
		a := answer{refusedBy: result.DecidedBy, code: chain.CodeWebhookDenies}
		if by := result.Opinions[len(result.Opinions)-1]; by.OnlyRefuses { // a Quarantine or NodeScope
			a.code = by.Code
		}
		return a
	}
	a := answer{refusedBy: ByAuthorization, code: chain.CodeNoBindingAllows}
	if by.standing == Conforming || by.standing == EmptyName {
		a.code = evaluate.Main(result).Code
		a.caveat = ev.caveat(req, by.node, a.code)
	}
	return a
}

// caveat returns why a refusal without a path may differ from the answer at the time of the
// request. Other refusals do not depend on the state.
func (ev *Evaluators) caveat(req *request, node string, code verdict.Code) Caveat {
	if code != nodeauthz.NoPathToObject {
		return ""
	}
	if !ev.State.KnowsNode(node) {
		return NodeNotInState
	}
	if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok && !ev.State.Graph.Has(kind, req.Namespace, req.Name) {
		return ObjectNotInState
	}
	return ""
}

// explain returns why the chain refuses. Unsure is why the refusal may be wrong.
func (ev *Evaluators) explain(ctx context.Context, req *request) (reason verdict.Reason, unsure string) {
	result, _ := ev.Chain.Explain(ctx, req) // the opinions hold the errors
	if why := result.Doubt(); why != "" {
		return reason, why
	}
	if ev.Missing != nil {
		unsure = ev.Missing(req, result)
	}
	return evaluate.Main(result).Reason, unsure
}

// The answers of evaluators in a report.
const (
	saysAllow     = "allow"
	saysRefuse    = "refuse"
	saysUndecided = "undecided"
)

// asNode returns the answer of the chain to the same request of the node's own user.
func (ev *Evaluators) asNode(ctx context.Context, req *request, node string) string {
	own := *req
	own.User, own.Groups = nodeidentity.User(node)
	own.UID, own.Extra = "", nil
	switch decision, _, err := ev.Chain.Settled(ctx, &own); {
	case err != nil:
		return saysUndecided
	case decision == verdict.Allow:
		return saysAllow
	}
	return saysRefuse
}

// Unexamined is why NodeRestriction could not examine a write.
type Unexamined string

// The reasons. The text is part of the report.
const (
	// NoObject: the log does not have the written object.
	NoObject Unexamined = "the log does not have the written object: the audit policy must log it at level Request"
	// PatchOnly: the log has only the patch.
	PatchOnly Unexamined = "the log has the patch, but not the object that it was applied to"
	// NoOldObject: a rule compares with the old object.
	NoOldObject Unexamined = "a rule compares with the old object, which audit logs do not have"
	// UnreadableObject: the log has the written object, but it cannot be decoded.
	UnreadableObject Unexamined = "the written object cannot be decoded"
	// OtherState: the state lacks an object that existed at the time of the request.
	OtherState Unexamined = "the state does not have the pod, node or service account of the time of the request"
	// NoDecision: an authorizer that NodeRestriction asks could not decide.
	NoDecision Unexamined = "the authorizers could not decide whether the node may have what its pod does not request"
)

// connects are subresources of the operation CONNECT, which is not a write.
var connects = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// admit evaluates a write by NodeRestriction, if the log has what the rules read.
func (ev *Evaluators) admit(ctx context.Context, e *auditlog.Event, asked *request, by who) answer {
	operation := noderestriction.OperationOf(e.Verb)
	if operation == "" || e.Object == nil || connects[e.Object.Subresource] || by.standing != Conforming && by.standing != EmptyName {
		return answer{}
	}
	req := noderestriction.Request{
		User: asked.User, UID: asked.UID, Groups: asked.Groups, Extra: asked.Extra, Operation: operation,
		Group: asked.Group, Version: asked.Version, Resource: asked.Resource, Subresource: asked.Subresource,
		Namespace: asked.Namespace, Name: e.Object.Name,
	}
	wantsObject, wantsOld := ev.Restriction.Reads(&req)
	var lacks Unexamined
	if wantsObject {
		req.Object, lacks = objectOf(e)
	}
	if wantsOld && lacks == "" {
		lacks = NoOldObject
	}
	return examined(ev.Restriction.Decide(ctx, &req), lacks)
}

// examined interprets an answer that was given without a missing object. Checks that need no
// object come first, so their refusals hold for any object.
func examined(result noderestriction.Answer, lacks Unexamined) answer {
	switch {
	case result.Code == noderestriction.NotRestricted:
		return answer{}
	case result.Decision == verdict.Allow && lacks == "":
		return answer{examined: true}
	case result.Decision == verdict.Allow, result.Code == noderestriction.UnexpectedObject:
		if lacks == "" {
			lacks = UnreadableObject
		}
		return answer{unexamined: lacks}
	}
	switch result.Code {
	case noderestriction.AuthorizationFailed:
		return answer{unexamined: NoDecision}
	case noderestriction.PodNotFound, noderestriction.PodUIDMismatch,
		noderestriction.NodeNotFound, noderestriction.NodeUIDMismatch,
		noderestriction.ServiceAccountNotFound, noderestriction.ServiceAccountUIDMismatch,
		noderestriction.AudienceLookupFailed:
		return answer{unexamined: OtherState}
	}
	a := answer{refusedBy: ByNodeRestriction, code: result.Code, reason: result.Reason, examined: true}
	if result.Stale {
		a.caveat = ObjectNotInState
	}
	return a
}

// objectOf returns the written object. For kinds of which rules read only the name, the name
// is enough, and the log has it at every level.
func objectOf(e *auditlog.Event) (runtime.Object, Unexamined) {
	text := e.RequestObject()
	switch {
	case e.Verb == "patch":
		return nil, PatchOnly
	case text == nil:
		if implied := impliedObject(e.Object); implied != nil {
			return implied, ""
		}
		return nil, NoObject
	}
	var header metav1.TypeMeta
	_ = json.Unmarshal(text, &header) // without a kind, decoding the object fails
	object, err := review.DecodeObject(text, header.GroupVersionKind())
	if err != nil {
		return nil, UnreadableObject
	}
	return object, ""
}

func impliedObject(o *auditlog.Object) runtime.Object {
	if o.Name == "" {
		return nil
	}
	named := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	switch {
	case o.Resource == "leases" && o.Group == coordination:
		return &coordinationv1.Lease{ObjectMeta: named}
	case o.Resource == "csinodes" && o.Group == storagev1.GroupName && o.Subresource == "":
		return &storagev1.CSINode{ObjectMeta: named}
	case o.Resource == "pods" && o.Group == "" && o.Subresource == "eviction":
		return &policyv1.Eviction{ObjectMeta: named}
	}
	return nil
}
