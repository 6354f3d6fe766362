package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// configuration reads the file of --authorization-config. It returns nil without the flag.
func (f *stateFlags) configuration() (*chain.Configuration, error) {
	if f.authorization == "" {
		return nil, nil
	}
	c, err := chain.Load(f.authorization)
	var problems chain.Problems
	if errors.As(err, &problems) && len(problems) > 1 {
		for _, p := range problems {
			f.app.failure("%s: %v", f.authorization, p)
		}
		return nil, fmt.Errorf("%s cannot be used: %d problems", f.authorization, len(problems))
	}
	return c, err
}

// needsRBAC reports whether RBAC is asked, but the state has no roles and bindings.
func (s *session) needsRBAC(result chain.Result) bool {
	return !s.State.RBACLoaded() && result.Decision != verdict.Allow && s.asksRBAC(result)
}

// asksRBAC reports whether RBAC is asked, or would be if there were roles and
// bindings.
func (s *session) asksRBAC(result chain.Result) bool {
	return s.configured == "" || asked(result, chain.NameRBAC)
}

func asked(result chain.Result, authorizer string) bool {
	return slices.ContainsFunc(result.Opinions, func(o chain.Opinion) bool { return o.Authorizer == authorizer })
}

// assumption returns what an answer of an authorizer assumes of kube-apiserver; empty for all authorizers but
// NodeScopes and Quarantines.
func assumption(authorizer string) string {
	switch authorizer {
	case chain.NameNodeScope:
		return "assumes that kube-apiserver asks node-authorizer about NodeScopes"
	case chain.NameQuarantine:
		return "assumes that kube-apiserver asks node-authorizer about Quarantines"
	}
	return ""
}

// requireRBAC returns an error for a state without roles and bindings if RBAC is asked: every
// request without an opinion of the Node authorizer would be undecided.
func (s *session) requireRBAC() error {
	if s.State.RBACLoaded() || s.configured != "" && !slices.Contains(s.Chain.Names(), chain.NameRBAC) {
		return nil
	}
	return fmt.Errorf("no roles and bindings in %s, and RBAC decides what the Node authorizer does not: "+
		"add them with --from, take a snapshot, or ask the cluster", s.State.Origin)
}
