package rbac

import (
	"fmt"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policy is a set of roles and bindings that answers requests while it changes.
// Bindings are indexed by subject, so that the cost of an answer depends only on the
// bindings of the user. All methods may be called concurrently.
//
// A policy keeps the given objects and returns pointers into them. They must not be
// changed afterwards; to change an object, set a new one.
type Policy struct {
	computeAggregation bool

	mu           sync.RWMutex
	roles        map[scopedName]*rbacv1.Role
	clusterRoles map[string]*clusterRole
	// bindings holds both kinds; a cluster role binding has no namespace.
	bindings map[scopedName]*binding
	// byScope finds bindings by namespace, "" being cluster-wide, then subject.
	byScope map[string]subjectIndex
	// unions caches computed aggregations; a change of any cluster role
	// replaces it.
	unions *sync.Map // cluster role name → *union
}

type scopedName struct{ namespace, name string }

// Option changes how a new policy works.
type Option func(*Policy)

// ComputeAggregation makes the policy fill aggregated cluster roles like the
// controller, for state from manifests: a cluster role with an aggregation rule and
// no rules of its own gets the rules of the cluster roles that it selects, without
// duplicates, in the order of its selectors and then of the role names. Aggregated
// roles may select aggregated roles.
//
// Stated rules are kept unchanged, with or without an aggregation rule, because the
// API server evaluates them. Do not use this option with the state of a live cluster:
// there an empty aggregated role grants nothing until the controller has filled it,
// and neither may the policy.
func ComputeAggregation() Option {
	return func(p *Policy) { p.computeAggregation = true }
}

// NewPolicy returns a policy without roles and bindings, which allows nothing.
func NewPolicy(opts ...Option) *Policy {
	p := &Policy{
		roles:        map[scopedName]*rbacv1.Role{},
		clusterRoles: map[string]*clusterRole{},
		bindings:     map[scopedName]*binding{},
		byScope:      map[string]subjectIndex{},
		unions:       &sync.Map{},
	}
	for _, opt := range opts {
		opt(p)
	}
	return p
}

// SetRole adds the role or replaces the one of the same namespace and name.
func (p *Policy) SetRole(role *rbacv1.Role) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roles[scopedName{role.Namespace, role.Name}] = role
}

// DeleteRole removes a role. Bindings to it stay and grant nothing.
func (p *Policy) DeleteRole(namespace, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.roles, scopedName{namespace, name})
}

// SetClusterRole adds the cluster role or replaces the one of the same name.
func (p *Policy) SetClusterRole(role *rbacv1.ClusterRole) {
	cr := newClusterRole(role)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clusterRoles[role.Name] = cr
	p.unions = &sync.Map{}
}

// DeleteClusterRole removes a cluster role. Bindings to it stay and grant
// nothing.
func (p *Policy) DeleteClusterRole(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clusterRoles, name)
	p.unions = &sync.Map{}
}

// SetRoleBinding adds the binding or replaces the one of the same namespace and name.
// One without a namespace, which cannot exist in an API server, is ignored: it must
// not be treated as a cluster role binding.
func (p *Policy) SetRoleBinding(rb *rbacv1.RoleBinding) {
	if rb.Namespace == "" {
		return
	}
	p.setBinding(newBinding("RoleBinding", &rb.ObjectMeta, rb.RoleRef, rb.Subjects))
}

// DeleteRoleBinding removes a role binding.
func (p *Policy) DeleteRoleBinding(namespace, name string) {
	if namespace == "" {
		return
	}
	p.deleteBinding(scopedName{namespace, name})
}

// SetClusterRoleBinding adds the binding or replaces the one of the same name.
func (p *Policy) SetClusterRoleBinding(crb *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: crb.Name, Labels: crb.Labels, Annotations: crb.Annotations}
	p.setBinding(newBinding("ClusterRoleBinding", &meta, crb.RoleRef, crb.Subjects))
}

// DeleteClusterRoleBinding removes a cluster role binding.
func (p *Policy) DeleteClusterRoleBinding(name string) {
	p.deleteBinding(scopedName{"", name})
}

func (p *Policy) setBinding(b *binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := scopedName{b.ref.Namespace, b.ref.Name}
	p.unindexLocked(key)
	p.bindings[key] = b
	index := p.byScope[key.namespace]
	if index == nil {
		index = subjectIndex{}
		p.byScope[key.namespace] = index
	}
	index.add(b)
}

func (p *Policy) deleteBinding(key scopedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unindexLocked(key)
	delete(p.bindings, key)
}

func (p *Policy) unindexLocked(key scopedName) {
	b := p.bindings[key]
	if b == nil {
		return
	}
	index := p.byScope[key.namespace]
	index.remove(b)
	if len(index) == 0 {
		delete(p.byScope, key.namespace)
	}
}

// Ref names a role or binding.
type Ref struct {
	// Kind is Role, ClusterRole, RoleBinding or ClusterRoleBinding; in the role
	// reference of a binding it may be anything that the binding says.
	Kind string `json:"kind"`
	// Namespace is empty for the cluster-scoped kinds.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the role or binding.
	Name string `json:"name"`
}

// String renders a reference as `RoleBinding "shop/readers"`.
func (r Ref) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %q", r.Kind, r.Name)
	}
	return fmt.Sprintf("%s %q", r.Kind, r.Namespace+"/"+r.Name)
}

// compareRefs orders bindings: cluster-wide bindings first, then by
// namespace and name. It is the order in which bindings are evaluated.
func compareRefs(a, b Ref) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
