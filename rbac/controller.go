package rbac

import (
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ClusterRole returns a cluster role, which must not be changed.
func (p *Policy) ClusterRole(name string) (*rbacv1.ClusterRole, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	role, ok := p.clusterRoles[name]
	if !ok {
		return nil, false
	}
	return role.ClusterRole, true
}

// Aggregate does what the cluster's controller does after cluster roles have changed: it sets the rules
// of each aggregated cluster role that selects one of them, also through others. Changed are the roles as
// they were and as they are; their labels count. It returns the names of the roles that it set, sorted.
//
// Roles that select none of them keep their rules. So do roles with an invalid selector: the
// controller fails at them.
func (p *Policy) Aggregate(changed []*rbacv1.ClusterRole) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	stale := p.selecting(changed)
	names := make([]string, 0, len(stale))
	for name := range stale {
		names = append(names, name)
	}
	slices.Sort(names)
	// Roles that select each other get the same rules: those that are stated within reach.
	rules := map[string][]rbacv1.PolicyRule{}
	for _, name := range names {
		rules[name] = p.selectedRules(p.clusterRoles[name], stale)
	}
	for _, name := range names {
		role := p.clusterRoles[name].DeepCopy()
		role.Rules = rules[name]
		p.clusterRoles[name] = newClusterRole(role)
	}
	p.unions = &sync.Map{}
	return names
}

// selecting finds the aggregated roles that select one of the given, directly or through others, and the
// aggregated ones among the given themselves.
func (p *Policy) selecting(changed []*rbacv1.ClusterRole) map[string]bool {
	stale := map[string]bool{}
	queue := slices.Clone(changed)
	add := func(role *clusterRole) {
		if role != nil && role.AggregationRule != nil && role.selectorErr == nil && !stale[role.Name] {
			stale[role.Name] = true
			queue = append(queue, role.ClusterRole)
		}
	}
	for _, role := range changed {
		add(p.clusterRoles[role.Name])
	}
	for i := 0; i < len(queue); i++ {
		for _, role := range p.clusterRoles {
			if role.selects(queue[i]) {
				add(role)
			}
		}
	}
	return stale
}

// Selects reports whether an aggregated cluster role selects another.
func Selects(role, other *rbacv1.ClusterRole) bool { return newClusterRole(role).selects(other) }

func (r *clusterRole) selects(other *rbacv1.ClusterRole) bool {
	return slices.ContainsFunc(r.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(other.Labels)) })
}

// selectedRules collects the rules that a role selects, through roles that must be set again too.
func (p *Policy) selectedRules(role *clusterRole, stale map[string]bool) []rbacv1.PolicyRule {
	names := make([]string, 0, len(p.clusterRoles))
	for name := range p.clusterRoles {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	u, seen, visited := &union{}, map[string]bool{}, map[string]bool{}
	var visit func(*clusterRole)
	visit = func(role *clusterRole) {
		if visited[role.Name] {
			return
		}
		visited[role.Name] = true
		if !stale[role.Name] {
			u.add(role, seen)
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
	return u.rules
}
