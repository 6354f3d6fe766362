package nodeauthz

import (
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// entry is a resource with the rules that hold in one cluster.
type entry struct {
	*resource
	rules []rule
	off   []rule // would hold with a feature gate that is off and can be set
}

// ruleTable finds entries by the length of the resource's name, which at most
// three resources share.
type ruleTable [][]*entry

func newRuleTable(f kubeversion.Features) ruleTable {
	var t ruleTable
	for i := range resources {
		e := newEntry(&resources[i], f)
		if len(e.rules)+len(e.off) == 0 {
			continue
		}
		for len(t) <= len(e.name) {
			t = append(t, nil)
		}
		t[len(e.name)] = append(t[len(e.name)], e)
	}
	return t
}

func newEntry(r *resource, f kubeversion.Features) *entry {
	e := &entry{resource: r}
	for _, rule := range r.rules {
		switch {
		case rule.when == nil || rule.when.holds(f):
			e.rules = append(e.rules, rule)
		case len(rule.when.missing(f)) > 0:
			e.off = append(e.off, rule)
		}
	}
	return e
}

// missing returns the gates each of which would make the requirement hold.
func (r *requirement) missing(f kubeversion.Features) []kubeversion.Gate {
	var gates []kubeversion.Gate
	for _, gate := range r.gates {
		if with, err := f.With(gate, true); err == nil && r.holds(with) {
			gates = append(gates, gate)
		}
	}
	return gates
}

func (t ruleTable) find(group, name string) *entry {
	if len(name) >= len(t) {
		return nil
	}
	for _, e := range t[len(name)] {
		if e.name == name && e.group == group {
			return e
		}
	}
	return nil
}

// match returns the rule for a verb on a resource or subresource, or the code
// that says why there is none.
func (e *entry) match(subresource string, v verbSet) (*rule, verdict.Code) {
	for i := range e.rules {
		if r := &e.rules[i]; r.verbs&v != 0 && r.covers(subresource) {
			return r, ""
		}
	}
	for i := range e.off {
		if r := &e.off[i]; r.verbs&v != 0 && r.covers(subresource) {
			return nil, FeatureDisabled
		}
	}
	if subresource == "" {
		return nil, VerbNotAllowed
	}
	for i := range e.rules {
		if e.rules[i].covers(subresource) {
			return nil, VerbNotAllowed
		}
	}
	return nil, SubresourceNotAllowed
}

func (r *rule) covers(subresource string) bool {
	return r.subresource == subresource || r.subresource == anySubresource
}
