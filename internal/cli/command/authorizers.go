package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// configuration reads the file of --authorization-config. It returns nil without the flag.
func (f *StateFlags) configuration() (*chain.Configuration, error) {
	if f.Authorization == "" {
		return nil, nil
	}
	c, err := chain.Load(f.Authorization)
	var problems chain.Problems
	if errors.As(err, &problems) && len(problems) > 1 {
		for _, p := range problems {
			f.App.Failure("%s: %v", f.Authorization, p)
		}
		return nil, fmt.Errorf("%s cannot be used: %d problems", f.Authorization, len(problems))
	}
	return c, err
}

// NeedsRBAC reports whether RBAC is asked, but the state has no roles and bindings.
func (s *Session) NeedsRBAC(result chain.Result) bool {
	return !s.State.RBACLoaded() && result.Decision != verdict.Allow && s.AsksRBAC(result)
}

// AsksRBAC reports whether RBAC is asked, or would be if there were roles and
// bindings.
func (s *Session) AsksRBAC(result chain.Result) bool {
	isRBAC := func(o chain.Opinion) bool { return o.Authorizer == chain.NameRBAC }
	return s.Configured == "" || slices.ContainsFunc(result.Opinions, isRBAC)
}

// Assumption returns what an answer of an authorizer assumes of kube-apiserver; empty for all authorizers but
// NodeScopes and Quarantines.
func Assumption(authorizer string) string {
	switch authorizer {
	case chain.NameNodeScope:
		return "assumes that kube-apiserver asks node-authorizer about NodeScopes"
	case chain.NameQuarantine:
		return "assumes that kube-apiserver asks node-authorizer about Quarantines"
	}
	return ""
}

// RequireRBAC returns an error for a state without roles and bindings if RBAC is asked: every
// request without an opinion of the Node authorizer would be undecided.
func (s *Session) RequireRBAC() error {
	if s.State.RBACLoaded() || s.Configured != "" && !slices.Contains(s.Chain.Names(), chain.NameRBAC) {
		return nil
	}
	return fmt.Errorf("no roles and bindings in %s, and RBAC decides what the Node authorizer does not: "+
		"add them with --from, take a snapshot, or ask the cluster", s.State.Origin)
}
