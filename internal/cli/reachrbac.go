package cli

import (
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// rbacGrant is a rule that a binding gives to a node.
type rbacGrant struct {
	Binding rbac.Ref `json:"binding"`
	Role    rbac.Ref `json:"role"`
	Subject string   `json:"subject"`
	// Namespace that the rule holds in; empty for the whole cluster.
	Namespace string            `json:"namespace,omitempty"`
	Rule      rbacv1.PolicyRule `json:"rule"`
}

// rbacGrants lists what roles and bindings give to a user. Bindings to roles
// that do not exist give nothing.
func (s *session) rbacGrants(who identity, only filter) ([]rbacGrant, error) {
	grants, err := s.state.RBAC.Grants(who.User, who.Groups)
	if err != nil && !errors.Is(err, rbac.ErrRoleNotFound) {
		return nil, err
	}
	kept := []rbacGrant{}
	for _, g := range grants {
		if !only.rule(g) {
			continue
		}
		kept = append(kept, rbacGrant{
			Binding: g.Binding, Role: g.Role, Namespace: g.Binding.Namespace, Rule: *g.Rule,
			Subject: strings.ToLower(g.Subject.Kind) + " " + g.Subject.Name,
		})
	}
	return kept, nil
}

// writes reports whether the rule allows writes of objects.
func (g rbacGrant) writes() bool {
	return len(g.Rule.Resources) > 0 && slices.ContainsFunc(g.Rule.Verbs, func(verb string) bool {
		_, written := question{Verb: verb}.operation()
		return written || verb == rbacv1.VerbAll
	})
}
