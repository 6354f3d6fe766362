package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The reasons that the chain's own links give. Those of the Node authorizer are
// in nodeauthz.
const (
	// CodeBindingAllows: a rule of a role that is bound to the user allows it.
	CodeBindingAllows verdict.Code = "BindingAllows"
	// CodeNoBindingAllows: no role that is bound to the user allows it.
	CodeNoBindingAllows verdict.Code = "NoBindingAllows"
	// CodePrivilegedGroup: the user is in system:masters.
	CodePrivilegedGroup verdict.Code = "PrivilegedGroup"
	// CodeNotPrivileged: the user is not in system:masters.
	CodeNotPrivileged verdict.Code = "NotPrivileged"
)

// Names of the links, as API servers call them.
const (
	NameMasters = "system:masters"
	NameNode    = "Node"
	NameRBAC    = "RBAC"
)

// Masters is the link that every API server puts before those it is configured
// with: members of the group system:masters may do everything.
func Masters() Authorizer { return masters{} }

type masters struct{}

func (masters) Name() string { return NameMasters }

func (masters) Decide(_ context.Context, req *nodeauthz.Request) (verdict.Decision, error) {
	if slices.Contains(req.Groups, NameMasters) {
		return verdict.Allow, nil
	}
	return verdict.NoOpinion, nil
}

func (m masters) Explain(ctx context.Context, req *nodeauthz.Request) (Opinion, error) {
	decision, err := m.Decide(ctx, req)
	if decision == verdict.Allow {
		return Opinion{Decision: decision, Reason: verdict.Reason{
			Code:    CodePrivilegedGroup,
			Message: fmt.Sprintf("user %s is in group %s, which may do everything", req.User, NameMasters),
		}}, err
	}
	return Opinion{Decision: decision, Reason: verdict.Reason{
		Code:    CodeNotPrivileged,
		Message: fmt.Sprintf("user %s is not in group %s", req.User, NameMasters),
	}}, err
}

// Node is the Node authorizer as a link.
func Node(a *nodeauthz.Authorizer) Authorizer { return node{a} }

type node struct{ authorizer *nodeauthz.Authorizer }

func (node) Name() string { return NameNode }

func (n node) Decide(_ context.Context, req *nodeauthz.Request) (verdict.Decision, error) {
	return n.authorizer.Decide(req).Decision, nil
}

func (n node) Explain(_ context.Context, req *nodeauthz.Request) (Opinion, error) {
	e := n.authorizer.Explain(req)
	return Opinion{Decision: e.Decision, Rule: e.Rule, Reason: e.Reason}, nil
}

// RBAC is role-based access control as a link. A binding to a role that cannot
// be read, other than one that does not exist, is an error when nothing else
// allows the request.
func RBAC(p *rbac.Policy) Authorizer { return rbacLink{p} }

type rbacLink struct{ policy *rbac.Policy }

func (rbacLink) Name() string { return NameRBAC }

func (l rbacLink) Decide(_ context.Context, req *nodeauthz.Request) (verdict.Decision, error) {
	d := l.policy.Evaluate(rbacRequest(req))
	if d.Allowed {
		return verdict.Allow, nil
	}
	return verdict.NoOpinion, unreadable(d.Unresolved)
}

func (l rbacLink) Explain(_ context.Context, req *nodeauthz.Request) (Opinion, error) {
	asked := rbacRequest(req)
	d := l.policy.Evaluate(asked)
	if d.Allowed {
		return Opinion{
			Decision: verdict.Allow,
			Rule:     ruleText(d.Grant),
			Reason:   verdict.Reason{Code: CodeBindingAllows, Message: "allowed by " + d.Grant.String()},
		}, nil
	}
	findings := l.policy.Explain(asked)
	return Opinion{
		Decision: verdict.NoOpinion,
		Reason: verdict.Reason{
			Code:    CodeNoBindingAllows,
			Message: noBinding(req, findings),
			Hint:    rbacHint(findings),
		},
	}, unreadable(d.Unresolved)
}

func rbacRequest(req *nodeauthz.Request) rbac.Request {
	return rbac.Request{
		User: req.User, Groups: req.Groups, Verb: req.Verb,
		ResourceRequest: req.ResourceRequest,
		APIGroup:        req.Group, Resource: req.Resource, Subresource: req.Subresource,
		Namespace: req.Namespace, Name: req.Name, Path: req.Path,
	}
}

// unreadable leaves out roles that do not exist: they grant nothing, which is
// an answer.
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

func noBinding(req *nodeauthz.Request, findings []rbac.Finding) string {
	switch len(findings) {
	case 0:
		return fmt.Sprintf("no role is bound to user %s or its groups", req.User)
	case 1:
		return fmt.Sprintf("the one binding that applies to user %s does not allow it", req.User)
	}
	return fmt.Sprintf("none of the %d bindings that apply to user %s allows it", len(findings), req.User)
}

// rbacHint names the binding whose role comes nearest, unless it is off the
// subject: another resource or group is no hint.
func rbacHint(findings []rbac.Finding) string {
	for _, f := range findings {
		if errors.Is(f.Err, rbac.ErrRoleNotFound) {
			return fmt.Sprintf("%s refers to %s, which does not exist", f.Grant.Binding, f.Grant.Role)
		}
		if f.Err == nil && f.Grant.RuleIndex >= 0 && (f.Mismatch == rbac.VerbMismatch || f.Mismatch == rbac.ResourceNameMismatch) {
			return fmt.Sprintf("%s comes nearest; it differs in the %s", f.Grant, f.Mismatch)
		}
	}
	return ""
}
