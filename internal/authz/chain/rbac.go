package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// RBAC returns the RBAC authorizer as part of a chain. A binding to a role that
// exists but cannot be read is an error if nothing else allows the request.
func RBAC(p *rbac.Policy) Authorizer { return rbacLink{p} }

type rbacLink struct{ policy *rbac.Policy }

func (rbacLink) Name() string { return NameRBAC }

func (l rbacLink) Authorize(_ context.Context, req *access.Request, detail Detail) (Opinion, error) {
	d := l.policy.Evaluate(req)
	switch {
	case d.Allowed && detail == DecisionOnly:
		return Opinion{Decision: verdict.Allow}, nil
	case d.Allowed:
		return allowedByBinding(d.Grant), nil
	}
	opinion := Opinion{Decision: verdict.NoOpinion}
	switch detail {
	case Full:
		explanations := l.policy.Explain(req)
		opinion.Reason = verdict.Reason{Code: CodeNoBindingAllows, Message: noBinding(req, explanations), Hint: rbacHint(explanations)}
	case Brief:
		opinion.Reason = verdict.Reason{Code: CodeNoBindingAllows, Message: "no role that is bound to the user allows it"}
	}
	return opinion, unreadable(d.Unresolved)
}

func allowedByBinding(g rbac.Grant) Opinion {
	return Opinion{
		Decision: verdict.Allow,
		Rule:     ruleText(g),
		Reason:   verdict.Reason{Code: CodeBindingAllows, Message: "allowed by " + g.String()},
	}
}

// unreadable leaves out the errors about roles that do not exist: such roles
// grant nothing, which is an answer.
func unreadable(all []rbac.Unresolved) error {
	var errs []error
	for _, u := range all {
		if !errors.Is(u, rbac.ErrRoleNotFound) {
			errs = append(errs, u)
		}
	}
	return errors.Join(errs...)
}

func ruleText(g rbac.Grant) string {
	r := g.Rule
	if r == nil {
		return ""
	}
	if len(r.NonResourceURLs) > 0 && len(r.Resources) == 0 {
		return fmt.Sprintf("%s %s", strings.Join(r.Verbs, ","), strings.Join(r.NonResourceURLs, ","))
	}
	text := fmt.Sprintf("%s %s", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","))
	if groups := strings.Join(r.APIGroups, ","); groups != "" {
		text += " in " + groups
	}
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ",")
	}
	return text
}

func noBinding(req *access.Request, explanations []rbac.BindingExplanation) string {
	switch len(explanations) {
	case 0:
		return fmt.Sprintf("no role is bound to user %s or its groups", req.User)
	case 1:
		return fmt.Sprintf("the one binding that applies to user %s does not allow it", req.User)
	}
	return fmt.Sprintf("none of the %d bindings that apply to user %s allows it", len(explanations), req.User)
}

// rbacHint names the binding whose role comes nearest, unless it is for another
// resource or group.
func rbacHint(explanations []rbac.BindingExplanation) string {
	for _, e := range explanations {
		if errors.Is(e.Err, rbac.ErrRoleNotFound) {
			return fmt.Sprintf("%s refers to %s, which does not exist", e.Grant.Binding, e.Grant.Role)
		}
		if e.Err == nil && e.Grant.RuleIndex >= 0 && (e.Mismatch == rbac.VerbMismatch || e.Mismatch == rbac.ResourceNameMismatch) {
			return fmt.Sprintf("%s comes nearest; it differs in the %s", e.Grant, e.Mismatch)
		}
	}
	return ""
}

// MissingRoles returns the bindings that apply to a request and refer to roles that
// the policy does not have. They grant nothing, but in an incomplete policy it is
// unknown what they would grant.
func MissingRoles(p *rbac.Policy, req *access.Request) []rbac.Unresolved {
	var all []rbac.Unresolved
	for _, u := range p.Evaluate(req).Unresolved {
		if errors.Is(u, rbac.ErrRoleNotFound) {
			all = append(all, u)
		}
	}
	return all
}
