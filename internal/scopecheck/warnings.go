package scopecheck

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// Warning is about a part of a NodeScope that does not hold its accounts to their node.
type Warning struct {
	// Scope is the NodeScope.
	Scope string `json:"scope"`
	nodescope.Warning
	// Accounts are the accounts that may create tokens by their roles, as NAMESPACE/NAME; absent in other
	// warnings, if the state has no roles, and if the scope is about all accounts of a namespace.
	Accounts []string `json:"accounts,omitempty"`
}

// text is the warning for people.
func (w *Warning) text() string {
	text := "NodeScope " + w.Scope + ": " + w.Message
	switch {
	case len(w.Accounts) > 0:
		text += "; by its roles, " + strings.Join(w.Accounts, ", ") + " may"
	case w.Code == nodescope.TokensAnywhere:
		text += "; whether roles let the account do that is not known"
	}
	return text
}

// warnings returns the warnings about the scopes. That about tokens is left out if roles let no account create any.
func (c *Checker) warnings() []Warning {
	warnings := []Warning{}
	for _, s := range c.objects {
		for _, of := range nodescope.Warnings(&s.Spec) {
			w := Warning{Scope: s.Name, Warning: of}
			if of.Code == nodescope.TokensAnywhere {
				known := false
				if w.Accounts, known = c.creatorsOfTokens(s); known && len(w.Accounts) == 0 {
					continue
				}
			}
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// creatorsOfTokens returns the accounts of a scope that may create tokens by their roles; false if this is
// not known of all.
func (c *Checker) creatorsOfTokens(s *v1alpha1.NodeScope) (accounts []string, known bool) {
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
		creates := false
		for _, g := range grants {
			creates = creates || nodescope.CreatesTokens(g.Rule)
		}
		if creates {
			accounts = append(accounts, subject.Namespace+"/"+subject.Name)
		}
		known = known && unresolved == nil
	}
	slices.Sort(accounts)
	return slices.Compact(accounts), known
}
