package rbac

import (
	"cmp"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/access"
)

// BindingExplanation explains the effect on a request of one binding that applies to
// the user.
type BindingExplanation struct {
	// Grant names the binding and subject, and the rule that allows the request
	// or, if none does, the one that comes nearest. A role without rules has
	// RuleIndex -1 and no Rule, as has one that could not be read.
	Grant Grant
	// Allows reports whether the rule covers the request.
	Allows bool
	// Mismatch is where the nearest rule and the request differ.
	Mismatch Mismatch
	// Err says why the role could not be read; it may be [ErrRoleNotFound].
	Err error
}

// Explain explains every binding that applies to the user, in the request's namespace
// and cluster-wide. They are in the order of evaluation, so the first that allows is
// the Grant of [Policy.Evaluate].
func (p *Policy) Explain(req *access.Request) []BindingExplanation {
	p.mu.RLock()
	defer p.mu.RUnlock()

	var explanations []BindingExplanation
	for _, e := range p.appliesRLocked(req.User, req.Groups, req.Namespace) {
		explanations = append(explanations, p.explanationRLocked(e, req))
	}
	return explanations
}

func (p *Policy) explanationRLocked(e entry, req *access.Request) BindingExplanation {
	rules, err := p.rulesRLocked(e.binding)
	nearest, missing := -1, Mismatch(0)
	for i := range rules.rules {
		m := mismatch(&rules.rules[i], req)
		if nearest < 0 || m.nearness() < missing.nearness() {
			nearest, missing = i, m
		}
		if m == 0 {
			break
		}
	}
	if err != nil || nearest < 0 {
		return BindingExplanation{
			Grant: Grant{Binding: e.ref, Role: e.role, Subject: e.subject(e.subjectIndex), RuleIndex: -1},
			Err:   err,
		}
	}
	return BindingExplanation{Grant: e.grant(rules, nearest), Allows: missing == 0, Mismatch: missing}
}

// RulesFor lists what the user may do in the namespace, and cluster-wide if it
// is empty, in the order of evaluation. The slices inside must not be changed.
// An error joins the [Unresolved] bindings that apply to the user; the rules are
// valid nevertheless, but lack what these bindings might have granted.
func (p *Policy) RulesFor(user string, groups []string, namespace string) (
	[]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule, error,
) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	var (
		resource    []authorizationv1.ResourceRule
		nonResource []authorizationv1.NonResourceRule
		errs        []error
	)
	for _, e := range p.appliesRLocked(user, groups, namespace) {
		rules, err := p.rulesRLocked(e.binding)
		if err != nil {
			errs = append(errs, e.unresolved(err))
			continue
		}
		for _, rule := range rules.rules {
			if len(rule.Resources) > 0 {
				resource = append(resource, authorizationv1.ResourceRule{
					Verbs:         rule.Verbs,
					APIGroups:     rule.APIGroups,
					Resources:     rule.Resources,
					ResourceNames: rule.ResourceNames,
				})
			}
			if len(rule.NonResourceURLs) > 0 {
				nonResource = append(nonResource, authorizationv1.NonResourceRule{
					Verbs:           rule.Verbs,
					NonResourceURLs: rule.NonResourceURLs,
				})
			}
		}
	}
	return resource, nonResource, errors.Join(errs...)
}

// appliesRLocked lists the bindings that apply to the user, in the order of
// evaluation, each by its first subject that names the user or a group.
func (p *Policy) appliesRLocked(user string, groups []string, namespace string) []entry {
	var entries []entry
	collect := func(index subjectIndex) {
		entries = append(entries, index[principal{name: user}]...)
		for _, group := range groups {
			entries = append(entries, index[principal{group: true, name: group}]...)
		}
	}
	collect(p.byScope[""])
	if namespace != "" {
		collect(p.byScope[namespace])
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(compareRefs(a.ref, b.ref), cmp.Compare(a.subjectIndex, b.subjectIndex))
	})
	return slices.CompactFunc(entries, func(a, b entry) bool { return a.binding == b.binding })
}
