package nodescope

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// MaxScopes is how many scopes may be about one account, or about all accounts of one namespace.
// Each costs time in every request of the account.
const MaxScopes = 16

// Policy is a set of scopes, by account. It does not change.
type Policy struct {
	scopes []*Scope
	// byAccount has the scopes that name an account, by its user name. byNamespace has the scopes
	// about all accounts of a namespace.
	byAccount, byNamespace map[string][]*Scope
}

// NewPolicy returns the policy of some scopes. If more than [MaxScopes] are about one account, the
// oldest count for it: of two scopes created at the same time, the one whose name comes first. The
// others are returned as excess.
func NewPolicy(scopes []*Scope) (p *Policy, excess []*Scope) {
	p = &Policy{scopes: slices.Clone(scopes), byAccount: map[string][]*Scope{}, byNamespace: map[string][]*Scope{}}
	slices.SortFunc(p.scopes, older)
	for _, s := range p.scopes {
		whole := true
		for _, subject := range s.subjects {
			whole = p.add(subject, s) && whole
		}
		if !whole {
			excess = append(excess, s)
		}
	}
	return p, excess
}

// add reports whether there was room for the scope.
func (p *Policy) add(subject v1alpha1.Subject, s *Scope) bool {
	index, key := p.byNamespace, subject.Namespace
	if subject.Name != "" {
		index, key = p.byAccount, nodeidentity.ServiceAccountUser(subject.Namespace, subject.Name)
	}
	known := index[key]
	switch {
	case slices.Contains(known, s):
		return true
	case len(known) == MaxScopes:
		return false
	}
	index[key] = append(known, s)
	return true
}

func older(a, b *Scope) int {
	if c := a.created.Compare(b.created.Time); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}

// Scopes are all scopes of the policy, the oldest first. They must not be changed.
func (p *Policy) Scopes() []*Scope { return p.scopes }

// Of returns the scopes about a user, the oldest first: scopes that name the account, and scopes about
// its namespace. Other users have none.
func (p *Policy) Of(user string) []*Scope {
	account, namespace := p.of(user)
	switch {
	case len(namespace) == 0:
		return account
	case len(account) == 0:
		return namespace
	}
	both := slices.Clone(account)
	for _, s := range namespace {
		if !slices.Contains(both, s) {
			both = append(both, s)
		}
	}
	slices.SortFunc(both, older)
	return both
}

// About reports whether a scope names the account of a user, and whether one is about all accounts of its
// namespace.
func (p *Policy) About(user string) (account, namespace bool) {
	named, all := p.of(user)
	return len(named) > 0, len(all) > 0
}

// of allocates nothing.
func (p *Policy) of(user string) (account, namespace []*Scope) {
	if p == nil || len(p.scopes) == 0 {
		return nil, nil
	}
	in, _, ok := nodeidentity.ServiceAccount(user)
	if !ok {
		return nil, nil
	}
	return p.byAccount[user], p.byNamespace[in]
}
