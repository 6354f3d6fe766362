package learn

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Warning is about a rule of a NodeScope that lets pass a right with which its accounts leave their node, or less than it says.
type Warning struct {
	// Scope is the NodeScope.
	Scope string `json:"scope"`
	attackpaths.ScopeWarning
	// Accounts are the accounts to which roles grant such a right, as NAMESPACE/NAME, and Granted is what they grant;
	// absent if the state has no roles, and if the scope is about all accounts of a namespace.
	Accounts []string `json:"accounts,omitempty"`
	Granted  []string `json:"granted,omitempty"`
}

func (w *Warning) text() string {
	text := "NodeScope " + w.Scope + ": " + w.Message
	switch {
	case len(w.Accounts) > 0:
		return text + "; by its roles, " + strings.Join(w.Accounts, ", ") + " may " + strings.Join(w.Granted, ", ")
	case !w.AboutRights():
		return text
	}
	return text + "; whether roles let the account do that is not known"
}

// warnings returns the warnings about the scopes. Those are left out that are about rights which roles grant to no account.
func (c *Checker) warnings() []Warning {
	warnings := []Warning{}
	for _, s := range c.objects {
		all := attackpaths.ScopeWarnings(&s.Spec, c.evaluator.State.Aggregation())
		if len(all) == 0 {
			continue
		}
		roles, known := c.rolesOf(s)
		for i := range all {
			w := Warning{Scope: s.Name, ScopeWarning: all[i]}
			for _, r := range roles {
				if granted := all[i].Granted(r.rules); len(granted) > 0 {
					w.Accounts, w.Granted = append(w.Accounts, r.account), append(w.Granted, granted...)
				}
			}
			slices.Sort(w.Granted)
			w.Granted = slices.Compact(w.Granted)
			if known && len(w.Accounts) == 0 && w.AboutRights() {
				continue
			}
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// accountRoles has the rights that roles grant to an account.
type accountRoles struct {
	account string
	rules   []*rbacv1.PolicyRule
}

// rolesOf returns what roles grant to the accounts of a scope, sorted; false if this is not known of all.
func (c *Checker) rolesOf(s *v1alpha1.NodeScope) (all []accountRoles, known bool) {
	if !c.evaluator.State.RBACLoaded() {
		return nil, false
	}
	known = true
	for _, subject := range s.Spec.Subjects {
		if subject.Name == "" {
			known = false
			continue
		}
		user := nodeidentity.ServiceAccountUser(subject.Namespace, subject.Name)
		grants, unresolved := c.evaluator.State.RBAC.Grants(user, []string{
			"system:serviceaccounts", "system:serviceaccounts:" + subject.Namespace, "system:authenticated",
		})
		roles := accountRoles{account: subject.Namespace + "/" + subject.Name}
		for _, g := range grants {
			roles.rules = append(roles.rules, g.Rule)
		}
		all = append(all, roles)
		known = known && unresolved == nil
	}
	slices.SortFunc(all, func(a, b accountRoles) int { return strings.Compare(a.account, b.account) })
	return slices.CompactFunc(all, func(a, b accountRoles) bool { return a.account == b.account }), known
}
