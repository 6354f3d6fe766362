package query

import (
	"errors"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// rbacGrant is a rule that a binding gives to a node.
type rbacGrant struct {
	// Binding gives Role to Subject, which is the user or a group of the node.
	Binding rbac.Ref `json:"binding"`
	Role    rbac.Ref `json:"role"`
	Subject string   `json:"subject"`
	// Namespace is the namespace of the grant; empty for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Rule is the rule of the role.
	Rule rbacv1.PolicyRule `json:"rule"`
	// OwnName are the resources of the rule of which NodeRestriction lets the node write
	// only objects with its own name.
	OwnName []string `json:"ownName,omitempty"`
}

// rbacGrants returns what roles and bindings grant to a user. Bindings to roles that do not
// exist grant nothing.
func rbacGrants(s *command.Session, who command.Identity, only command.Filter) ([]rbacGrant, error) {
	grants, err := s.State.RBAC.Grants(who.User, who.Groups)
	if err != nil && !errors.Is(err, rbac.ErrRoleNotFound) {
		return nil, err
	}
	kept, limits := []rbacGrant{}, &writeLimits{Session: s, who: who}
	for _, g := range grants {
		if !only.Rule(g) {
			continue
		}
		kept = append(kept, rbacGrant{
			Binding: g.Binding, Role: g.Role, Namespace: g.Binding.Namespace, Rule: *g.Rule,
			Subject: strings.ToLower(g.Subject.Kind) + " " + g.Subject.Name, OwnName: limits.ownNames(*g.Rule),
		})
	}
	return kept, nil
}

// ownNames returns the resources of a rule of which the node may write only objects with its
// own name, independently of the names that the rule allows.
func (w *writeLimits) ownNames(rule rbacv1.PolicyRule) []string {
	rule.ResourceNames = nil
	var names []string
	for _, r := range []nodeauthz.Grant{
		{Resource: "nodes"},
		{Group: coordinationv1.GroupName, Resource: "leases", Namespace: leaseNamespace},
		{Group: storagev1.GroupName, Resource: "csinodes"},
	} {
		if w.writesOwnNameOnly(&rule, r) {
			names = append(names, r.Resource)
		}
	}
	return names
}

func (w *writeLimits) writesOwnNameOnly(rule *rbacv1.PolicyRule, of nodeauthz.Grant) bool {
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		for _, subresource := range []string{"", "status"} {
			if !rbac.RuleAllows(rule, &access.Request{
				User: w.who.User, Groups: w.who.Groups, Verb: verb, ResourceRequest: true,
				Group: of.Group, Resource: of.Resource, Subresource: subresource, Namespace: of.Namespace,
			}) {
				continue
			}
			of.Subresource = subresource
			if conditions, _ := w.limits(of, verb); ownNameOnly(conditions) {
				return true
			}
		}
	}
	return false
}

// leaseNamespace is the namespace of the leases of nodes.
const leaseNamespace = "kube-node-lease"

func (g rbacGrant) writes() bool {
	return len(g.Rule.Resources) > 0 && slices.ContainsFunc(g.Rule.Verbs, func(verb string) bool {
		_, written := operation(command.Question{Verb: verb})
		return written || verb == rbacv1.VerbAll
	})
}
