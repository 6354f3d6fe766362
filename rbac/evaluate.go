package rbac

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
)

// Grant is one rule of one role that one binding gives to one subject.
type Grant struct {
	Binding Ref
	// Role is the role of the binding. AggregatedFrom is the name of the cluster role
	// that states the rule if Role has it by computed aggregation, else empty.
	Role           Ref
	AggregatedFrom string
	// Subject is the first subject of the binding that applies to the user. A
	// service account has its namespace even if the binding leaves it out.
	Subject rbacv1.Subject
	// RuleIndex counts from zero within the rules of Role. Rule must not be
	// changed.
	RuleIndex int
	Rule      *rbacv1.PolicyRule
}

// String describes the grant in one line.
func (g Grant) String() string {
	from := ""
	if g.AggregatedFrom != "" {
		from = fmt.Sprintf(" (from ClusterRole %q)", g.AggregatedFrom)
	}
	return fmt.Sprintf("rule %d of %s%s, which %s grants to %s",
		g.RuleIndex, g.Role, from, g.Binding, subjectString(g.Subject))
}

func subjectString(s rbacv1.Subject) string {
	return Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.String()
}

// ErrRoleNotFound is the error of a binding to a role that does not exist.
var ErrRoleNotFound = errors.New("role not found")

// Unresolved is a binding that applies to the user but grants nothing, because its
// role does not exist or cannot be read.
type Unresolved struct {
	Binding Ref
	Role    Ref
	Err     error
}

// Error names the binding that grants nothing, and why.
func (u Unresolved) Error() string {
	return fmt.Sprintf("%s to %s: %v", u.Binding, u.Role, u.Err)
}

// Unwrap returns Err, which [ErrRoleNotFound] may be.
func (u Unresolved) Unwrap() error { return u.Err }

// Decision is the answer to a request.
type Decision struct {
	// Allowed is false if no rule covers the request. RBAC then has no opinion;
	// it never denies.
	Allowed bool
	// Grant allowed the request; it is zero if none did. If several do, it is the
	// first one: cluster role bindings by name, then role bindings by name, and the
	// first rule within.
	Grant Grant
	// Unresolved holds the bindings that might have allowed the request if
	// their role could have been read, ordered like Grant. It is only set if
	// the request is not allowed.
	Unresolved []Unresolved
}

// Evaluate answers the request. An answer that allows costs no allocation.
func (p *Policy) Evaluate(req *access.Request) Decision {
	p.mu.RLock()
	defer p.mu.RUnlock()

	var s search
	s.scopeRLocked(p, "", req)
	if s.found.binding == nil && req.Namespace != "" {
		s.scopeRLocked(p, req.Namespace, req)
	}
	if s.found.binding == nil {
		return Decision{Unresolved: s.sortedUnresolved()}
	}
	return Decision{Allowed: true, Grant: s.found.grant(s.rules, s.ruleIndex)}
}

// search finds the first binding, in order, that allows a request. The bindings of
// each principal of the user are ordered, so each list is searched until a binding
// allows or comes after the best one found.
type search struct {
	found      entry
	ruleIndex  int
	rules      ruleSet
	unresolved []Unresolved
}

func (s *search) scopeRLocked(p *Policy, scope string, req *access.Request) {
	index := p.byScope[scope]
	if len(index) == 0 {
		return
	}
	s.listRLocked(p, index[principal{name: req.User}], req)
	for _, group := range req.Groups {
		s.listRLocked(p, index[principal{group: true, name: group}], req)
	}
}

func (s *search) listRLocked(p *Policy, entries []entry, req *access.Request) {
	for _, e := range entries {
		if s.found.binding != nil {
			if e.binding == s.found.binding {
				s.found.subjectIndex = min(s.found.subjectIndex, e.subjectIndex)
				return
			}
			if compareRefs(e.ref, s.found.ref) > 0 {
				return
			}
		}
		rules, err := p.rulesRLocked(e.binding)
		if err != nil {
			s.unresolved = append(s.unresolved, e.unresolved(err))
			continue
		}
		for i := range rules.rules {
			if RuleAllows(&rules.rules[i], req) {
				s.found, s.ruleIndex, s.rules = e, i, rules
				return
			}
		}
	}
}

// sortedUnresolved also drops repetitions: a binding can apply to a user and
// several of its groups.
func (s *search) sortedUnresolved() []Unresolved {
	slices.SortStableFunc(s.unresolved, func(a, b Unresolved) int { return compareRefs(a.Binding, b.Binding) })
	return slices.CompactFunc(s.unresolved, func(a, b Unresolved) bool { return a.Binding == b.Binding })
}

func (e entry) grant(rules ruleSet, i int) Grant {
	return Grant{
		Binding:        e.ref,
		Role:           e.role,
		AggregatedFrom: rules.source(i),
		Subject:        e.subject(e.subjectIndex),
		RuleIndex:      i,
		Rule:           &rules.rules[i],
	}
}

func (e entry) unresolved(err error) Unresolved {
	return Unresolved{Binding: e.ref, Role: e.role, Err: err}
}

// rulesRLocked returns the rules of a binding's role. A cluster role binding cannot
// refer to a role, because it has no namespace.
func (p *Policy) rulesRLocked(b *binding) (ruleSet, error) {
	switch b.role.Kind {
	case "ClusterRole":
		if role := p.clusterRoles[b.role.Name]; role != nil {
			return p.clusterRoleRulesRLocked(role)
		}
	case "Role":
		if role := p.roles[scopedName{b.role.Namespace, b.role.Name}]; role != nil && b.role.Namespace != "" {
			return ruleSet{rules: role.Rules}, nil
		}
	default:
		return ruleSet{}, fmt.Errorf("a role of kind %q is not supported", b.role.Kind)
	}
	return ruleSet{}, ErrRoleNotFound
}
