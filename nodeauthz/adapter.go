package nodeauthz

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

var (
	_ authorizer.Authorizer   = (*Authorizer)(nil)
	_ authorizer.RuleResolver = (*Authorizer)(nil)
)

// ErrNotSynced is the error of Authorize if a relation is missing and the graph has
// not synced yet.
var ErrNotSynced = errors.New("the graph of nodes and objects has not synced yet: retry")

// Option changes how an Authorizer adapts to k8s.io/apiserver.
type Option func(*options)

type options struct {
	synced   func() bool
	detailed bool
}

// WithSynced sets a function that reports whether the graph has synced. It is called
// until it returns true. Until then, Authorize returns ErrNotSynced and NoOpinion for
// requests without a relation.
func WithSynced(synced func() bool) Option {
	return func(o *options) { o.synced = synced }
}

// WithDetailedReasons lets Authorize return the whole message of a refusal, which
// names the nearest path. An API server shows the reason to the requesting user: it
// reveals to a node which objects exist and what runs on other nodes. Use it only if
// callers may know that. Without it, the reason is one fixed sentence per code and
// free.
func WithDetailedReasons() Option {
	return func(o *options) { o.detailed = true }
}

// Authorize implements authorizer.Authorizer: DecisionAllow or
// DecisionNoOpinion. The reason is empty for users that are not nodes.
func (a *Authorizer) Authorize(ctx context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	var req access.Request
	access.FromAttributes(attrs, &req)
	decision, code, node, e, r := a.decide(&req)
	if decision == verdict.Allow {
		return authorizer.DecisionAllow, "", nil
	}
	if code == NoPathToObject && !a.synced.Load() {
		if a.options.synced != nil && !a.options.synced() {
			return authorizer.DecisionNoOpinion, Summary(code), ErrNotSynced
		}
		// It may have synced since the decision.
		a.synced.Store(true)
		return a.Authorize(ctx, attrs)
	}
	if a.options.detailed && code != NotANode {
		answer := Answer{Decision: decision, Code: code, Node: node, entry: e, rule: r}
		return authorizer.DecisionNoOpinion, a.Message(&req, answer), nil
	}
	return authorizer.DecisionNoOpinion, Summary(code), nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. The Node
// authorizer's decisions have no conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attrs authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attrs))
}

// EvaluateConditions implements authorizer.Authorizer. It returns an error, because
// this authorizer has no conditions.
func (a *Authorizer) EvaluateConditions(
	context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver: the rules of a node in a namespace and
// at cluster scope, with the names of the objects that its pods need. Rules that
// require a field selector cannot be expressed in this form; an error names them, and
// the result is marked incomplete.
func (a *Authorizer) RulesFor(_ context.Context, u user.Info, namespace string) (
	[]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error,
) {
	if u == nil {
		return nil, nil, false, nil
	}
	probe := a.Decide(&access.Request{User: u.GetName(), Groups: u.GetGroups()})
	if probe.Node == "" {
		return nil, nil, false, nil
	}
	rules, complete := a.namedRules(probe.Node, namespace)
	var infos []authorizer.ResourceRuleInfo
	for _, r := range rules {
		infos = append(infos, &authorizer.DefaultResourceRuleInfo{
			Verbs: r.verbs, APIGroups: []string{r.group}, Resources: []string{r.resource}, ResourceNames: r.names,
		})
	}
	if complete {
		return infos, nil, false, nil
	}
	return infos, nil, true, fmt.Errorf("not listed: what node %q may list and watch only with the field selector %s=%s",
		probe.Node, nodeNameField, probe.Node)
}
