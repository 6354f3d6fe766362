package rbac

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// AggregationDifference is an aggregated cluster role whose stated rules differ from
// the rules that the controller would write.
type AggregationDifference struct {
	// Role is the name of the cluster role.
	Role string
	// Missing counts the rules of the selected roles that the role lacks; Extra
	// counts the rules of the role that none of them has.
	Missing, Extra int
}

// maxAggregationSteps bounds the work of AggregationDifferences: compared labels and
// collected rules.
const maxAggregationSteps = 1_000_000

// AggregationDifferences compares the stated rules of aggregated cluster roles with the
// rules that kube-controller-manager would write from the roles of the policy, in any
// order. It returns the roles whose rules differ, by name. It skips roles without
// rules, and roles with invalid selectors, which the controller does not write
// either. If the policy has too many roles to compare all, complete is false.
func (p *Policy) AggregationDifferences() (differences []AggregationDifference, complete bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	c := newComparison(p.clusterRoles)
	for _, name := range c.names {
		role := p.clusterRoles[name]
		if role.AggregationRule == nil || len(role.Rules) == 0 {
			continue
		}
		written, ok := c.written(role)
		if c.steps > maxAggregationSteps {
			return differences, false
		}
		if !ok {
			continue
		}
		d := AggregationDifference{Role: name}
		stated := map[string]bool{}
		for _, rule := range role.Rules {
			stated[ruleKey(&rule)] = true
		}
		for key := range stated {
			if !written[key] {
				d.Extra++
			}
		}
		for key := range written {
			if !stated[key] {
				d.Missing++
			}
		}
		if d.Missing+d.Extra > 0 {
			differences = append(differences, d)
		}
	}
	return differences, true
}

// comparison computes the rules that the controller would write, within a number of
// steps.
type comparison struct {
	roles map[string]*clusterRole
	names []string // sorted
	// selected caches the roles that an aggregated role selects.
	selected map[string][]*clusterRole
	steps    int
}

func newComparison(roles map[string]*clusterRole) *comparison {
	c := &comparison{roles: roles, selected: map[string][]*clusterRole{}}
	for name := range roles {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	return c
}

// written returns the keys of the rules that the controller would write: the rules of all
// roles within reach that are not aggregated themselves. It returns false if a
// selector is invalid.
func (c *comparison) written(role *clusterRole) (map[string]bool, bool) {
	rules, visited := map[string]bool{}, map[string]bool{role.Name: true}
	for queue := []*clusterRole{role}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.selectorErr != nil {
			return nil, false
		}
		if at.AggregationRule == nil {
			c.steps += len(at.Rules)
			for i := range at.Rules {
				rules[ruleKey(&at.Rules[i])] = true
			}
			continue
		}
		for _, next := range c.selects(at) {
			if c.steps++; c.steps > maxAggregationSteps {
				return nil, false
			}
			if !visited[next.Name] {
				visited[next.Name] = true
				queue = append(queue, next)
			}
		}
	}
	return rules, true
}

func (c *comparison) selects(role *clusterRole) []*clusterRole {
	if known, ok := c.selected[role.Name]; ok {
		return known
	}
	all := []*clusterRole{}
	for _, name := range c.names {
		if c.steps += len(role.selectors); c.steps > maxAggregationSteps {
			return nil
		}
		has := labels.Set(c.roles[name].Labels)
		if slices.ContainsFunc(role.selectors, func(s labels.Selector) bool { return s.Matches(has) }) {
			all = append(all, c.roles[name])
		}
	}
	c.selected[role.Name] = all
	return all
}
