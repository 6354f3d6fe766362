package rbac

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RoleRules is a role or cluster role with the rules that it grants.
type RoleRules struct {
	Role  Ref
	Rules []rbacv1.PolicyRule
	// Err says why the rules of an aggregated cluster role cannot be computed.
	Err error
	// Default is true for a role that the API server restores when it starts, by its label.
	Default bool
	// Sources are, for a cluster role with an aggregation rule, the cluster roles that state its
	// rules: a controller restores the rules from them. They have no aggregation rule. They are
	// sorted, and not nil even if there are none.
	Sources []string
	// Aggregates is true for a cluster role that selects others by their labels, and gets their rules.
	Aggregates bool
}

// Kubernetes restores objects with this label unless an annotation says that they are not updated.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
const (
	bootstrapping = "kubernetes.io/bootstrapping"
	rbacDefaults  = "rbac-defaults"
	autoUpdate    = "rbac.authorization.kubernetes.io/autoupdate"
)

// isDefault reports whether the API server restores an object.
func isDefault(meta *metav1.ObjectMeta) bool {
	return meta.Labels[bootstrapping] == rbacDefaults && meta.Annotations[autoUpdate] != "false"
}

// Roles lists all cluster roles by name, then all roles by namespace and name. Rules must not
// be changed.
func (p *Policy) Roles() []RoleRules {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]RoleRules, 0, len(p.clusterRoles)+len(p.roles))
	for _, role := range p.clusterRoles {
		rules, err := p.clusterRoleRulesRLocked(role)
		all = append(all, RoleRules{
			Role: Ref{Kind: "ClusterRole", Name: role.Name}, Rules: rules.rules, Err: err,
			Default: isDefault(&role.ObjectMeta), Sources: p.sourcesRLocked(role),
			Aggregates: len(role.selectors) > 0,
		})
	}
	for key, role := range p.roles {
		ref := Ref{Kind: "Role", Namespace: key.namespace, Name: key.name}
		all = append(all, RoleRules{Role: ref, Rules: role.Rules, Default: isDefault(&role.ObjectMeta)})
	}
	slices.SortFunc(all, func(a, b RoleRules) int { return compareRefs(a.Role, b.Role) })
	return all
}

// BoundRole is a binding with what it binds.
type BoundRole struct {
	// Binding has no namespace if it applies to the whole cluster.
	Binding Ref
	Role    Ref
	// Subjects are the subjects of the binding; a service account has its namespace even if the
	// binding leaves it out.
	Subjects []rbacv1.Subject
	// Default is true for a binding that the API server restores when it starts, by its label.
	Default bool
}

// Bindings lists all bindings in the order of evaluation: cluster role bindings by name, then
// role bindings by namespace and name.
func (p *Policy) Bindings() []BoundRole {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]BoundRole, 0, len(p.bindings))
	for _, b := range slices.SortedFunc(maps.Values(p.bindings), func(a, b *binding) int { return compareRefs(a.ref, b.ref) }) {
		bound := BoundRole{Binding: b.ref, Role: b.role, Default: b.isDefault, Subjects: make([]rbacv1.Subject, len(b.subjects))}
		for i := range b.subjects {
			bound.Subjects[i] = b.subject(i)
		}
		all = append(all, bound)
	}
	return all
}
