package rbac

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// AggregationDifference is an aggregated cluster role with stated rules that are not
// those that the controller would write.
type AggregationDifference struct {
	// Role is the name of the cluster role.
	Role string
	// Missing is how many rules the selected roles state and the role does not; Extra
	// how many it states that none of them does.
	Missing, Extra int
}

// maxAggregationSteps bounds how much AggregationDifferences looks at: labels that are
// compared and rules that are collected.
const maxAggregationSteps = 1_000_000

// AggregationDifferences compares the stated rules of aggregated cluster roles with those
// that kube-controller-manager would write from the roles of the policy, whatever order
// the rules have. It returns the roles whose rules differ, by name. Roles without rules
// have stated none, and those whose selectors cannot be read are not written by the
// controller either. In a policy with so many roles that comparing them would take
// long, complete is false, and the rest has not been compared.
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

// comparison computes what the controller would write, within a number of steps.
type comparison struct {
	roles map[string]*clusterRole
	names []string // sorted
	// selected has the roles that an aggregated role selects, as far as they are known.
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

// written returns the keys of the rules that the role ends up with: those of all roles
// within reach that are not aggregated themselves. It is false if a selector cannot be
// read.
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
