package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
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
