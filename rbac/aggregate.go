package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// clusterRole is a cluster role with its aggregation rule parsed.
type clusterRole struct {
	*rbacv1.ClusterRole
	selectors []labels.Selector
	// selectorErr says why an aggregation rule cannot be computed.
	selectorErr error
}

func newClusterRole(role *rbacv1.ClusterRole) *clusterRole {
	cr := &clusterRole{ClusterRole: role}
	if role.AggregationRule == nil {
		return cr
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return &clusterRole{ClusterRole: role, selectorErr: fmt.Errorf("aggregation rule, selector %d: %w", i, err)}
		}
		cr.selectors = append(cr.selectors, selector)
	}
	return cr
}

// ruleSet is the rules of a role. For a computed aggregation, sources holds the
// name of the cluster role that states each rule.
type ruleSet struct {
	rules   []rbacv1.PolicyRule
	sources []string
}

func (s ruleSet) source(i int) string {
	if s.sources == nil {
		return ""
	}
	return s.sources[i]
}

// union is the computed rule set of an aggregated cluster role.
type union struct {
	ruleSet
	err error
}

// aggregates reports whether the rules of the role have to be computed.
func (p *Policy) aggregates(role *clusterRole) bool {
	return p.computeAggregation && role.AggregationRule != nil && len(role.Rules) == 0
}

func (p *Policy) clusterRoleRulesRLocked(role *clusterRole) (ruleSet, error) {
	if !p.aggregates(role) {
		return ruleSet{rules: role.Rules}, nil
	}
	cached, ok := p.unions.Load(role.Name)
	if !ok {
		cached, _ = p.unions.LoadOrStore(role.Name, p.computeUnionRLocked(role))
	}
	u := cached.(*union)
	return u.ruleSet, u.err
}

// computeUnionRLocked collects the rules of every role that the aggregated role
// reaches. Roles that select each other in a cycle are visited once: the result is
// the union of all stated rules within reach.
func (p *Policy) computeUnionRLocked(role *clusterRole) *union {
	names := make([]string, 0, len(p.clusterRoles))
	for name := range p.clusterRoles {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)

	u := &union{ruleSet: ruleSet{sources: []string{}}}
	seen := map[string]bool{}
	visited := map[string]bool{}
	var visit func(*clusterRole)
	visit = func(role *clusterRole) {
		if visited[role.Name] {
			return
		}
		visited[role.Name] = true
		if !p.aggregates(role) {
			u.add(role, seen)
			return
		}
		if role.selectorErr != nil {
			u.err = fmt.Errorf("cluster role %q: %w", role.Name, role.selectorErr)
			return
		}
		for _, selector := range role.selectors {
			for _, name := range names {
				if selected := p.clusterRoles[name]; selector.Matches(labels.Set(selected.Labels)) {
					visit(selected)
				}
			}
		}
	}
	visit(role)
	return u
}

// add appends the rules of the role that have not been seen.
func (u *union) add(role *clusterRole, seen map[string]bool) {
	for _, rule := range role.Rules {
		key := ruleKey(&rule)
		if seen[key] {
			continue
		}
		seen[key] = true
		u.rules = append(u.rules, rule)
		u.sources = append(u.sources, role.Name)
	}
}

// ruleKey returns the same key for equal rules.
func ruleKey(rule *rbacv1.PolicyRule) string {
	return fmt.Sprintf("%q %q %q %q %q",
		rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs)
}

// sourcesRLocked names the cluster roles without an aggregation rule that an aggregated one
// selects, directly or through others; nil for a role that is not aggregated.
func (p *Policy) sourcesRLocked(role *clusterRole) []string {
	if role.AggregationRule == nil {
		return nil
	}
	sources, visited := []string{}, map[string]bool{}
	var visit func(*clusterRole)
	visit = func(role *clusterRole) {
		if visited[role.Name] {
			return
		}
		visited[role.Name] = true
		if role.AggregationRule == nil {
			sources = append(sources, role.Name)
		}
		for _, selector := range role.selectors {
			for _, selected := range p.clusterRoles {
				if selector.Matches(labels.Set(selected.Labels)) {
					visit(selected)
				}
			}
		}
	}
	visit(role)
	slices.Sort(sources)
	return sources
}
