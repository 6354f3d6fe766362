package rbac

import (
	"cmp"
	"errors"
	"slices"
)

// Grants lists every rule that any binding, cluster-wide or in any namespace, gives
// to the user, in the order of evaluation. A rule applies in the scope of its
// binding. The error joins the [Unresolved] bindings that apply to the user; the
// grants are valid nevertheless, but lack the grants of these bindings.
func (p *Policy) Grants(user string, groups []string) ([]Grant, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	var entries []entry
	for _, index := range p.byScope {
		entries = append(entries, index[principal{name: user}]...)
		for _, group := range groups {
			entries = append(entries, index[principal{group: true, name: group}]...)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(compareRefs(a.ref, b.ref), cmp.Compare(a.subjectIndex, b.subjectIndex))
	})
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.binding == b.binding })

	var grants []Grant
	var errs []error
	for _, e := range entries {
		rules, err := p.rulesRLocked(e.binding)
		if err != nil {
			errs = append(errs, e.unresolved(err))
			continue
		}
		for i := range rules.rules {
			grants = append(grants, e.grant(rules, i))
		}
	}
	return grants, errors.Join(errs...)
}
