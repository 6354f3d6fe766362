package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Taking something away never adds a path. What does not lead to the goal, alone or together
// with something else, therefore does not after a change either, and is left out of the graphs that
// changes are evaluated with. Where the graph itself leaves out what an identity has anyway, that
// counts as leading there:
//
//   - A right that the attacker can give to each identity is left out where an identity has it.
//   - Where Pod Security does not restrict a namespace, the right to turn it off is left out.
//   - Rights that a rule for everything contains are left out. The advisor evaluates changes of such
//     rules with all objects.

// reduce leaves out of the objects what does not lead from nodes to the goal. Roles keep their
// places.
func (b *builder) reduce(nodes []string) *objects {
	starts := make([]vertex, len(nodes))
	for i, name := range nodes {
		starts[i] = b.index[key{kind: isNode, name: name}]
	}
	return b.reduceTo(b.leadingFrom(starts...).to(func(v vertex, _ key) bool { return v == b.goal }))
}

// reduceTo leaves out of the objects what does not lead to an end.
func (b *builder) reduceTo(leads []bool) *objects {
	r := &reducer{builder: b, leads: leads}
	o := *b.objects
	o.known = b.namespaces
	o.nodes = slices.DeleteFunc(slices.Clone(b.nodes), func(n inventory.Node) bool {
		return !r.has(key{kind: isNode, name: n.Name}) && !r.has(key{kind: isNodeUser, name: nodeUserPrefix + n.Name})
	})
	o.bindings = slices.DeleteFunc(slices.Clone(b.bindings), func(bound rbac.BoundRole) bool { return !r.needsBinding(bound) })
	o.accounts, o.secrets = r.accounts(o.bindings), r.secrets()
	o.pods = r.pods()
	secrets := map[string][]verdict.Object{}
	for _, n := range o.nodes {
		secrets[n.Name] = slices.DeleteFunc(slices.Clone(b.objects.secretsOn(n.Name)), func(s verdict.Object) bool {
			return !r.has(key{kind: isSecret, namespace: s.Namespace, name: s.Name})
		})
	}
	o.secretsOn = func(node string) []verdict.Object { return secrets[node] }
	return &o
}

// leading finds what some vertices reach, were they one attacker, and what of that leads to others.
type leading struct {
	// reversed has the joins of which every part is reached.
	reversed *search.Graph
	keys     []key
	reached  []vertex
	has      []bool
}

func (b *builder) leadingFrom(starts ...vertex) *leading {
	s := b.solver(true)
	defer s.Release()
	s.Solve(starts...)
	l := &leading{keys: b.keys, reached: slices.Clone(s.Reached()), has: make([]bool, len(b.keys))}
	for _, v := range l.reached {
		l.has[v] = true
	}
	l.reversed = b.edges.Reversed(true, func(j *join) []vertex {
		if slices.ContainsFunc(j.From, func(v vertex) bool { return !l.has[v] }) {
			return nil
		}
		return j.From
	})
	return l
}

// to marks what leads to an end, or to where the graph leaves things out.
func (l *leading) to(isEnd func(vertex, key) bool) []bool {
	var ends []vertex
	for _, v := range l.reached {
		k := l.keys[v]
		if isEnd(v, k) || k.kind == isOwnRight || k.kind == isFact && k.name == privilegedPods {
			ends = append(ends, v)
		}
	}
	s := l.reversed.Solver(true)
	defer s.Release()
	s.Solve(ends...)
	leads := make([]bool, len(l.has))
	for _, v := range s.Reached() {
		leads[v] = l.has[v]
	}
	return leads
}

// reducer selects objects.
type reducer struct {
	*builder
	leads []bool
}

// has reports whether a vertex leads to the goal, perhaps only as one that is impersonated.
func (r *reducer) has(k key) bool {
	for _, variant := range [...]uint16{k.variant, impersonated, impersonatedNode} {
		k.variant = variant
		if v, ok := r.index[k]; ok && r.leads[v] {
			return true
		}
	}
	return false
}

// needsBinding reports whether a binding gives something that leads to the goal, or names
// someone who is there because it does.
func (r *reducer) needsBinding(bound rbac.BoundRole) bool {
	if role, ok := r.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]; ok {
		for variant := anybody; variant <= ownOfOthers; variant++ {
			if r.has(key{kind: isRole, variant: variant, namespace: bound.Binding.Namespace, role: role}) {
				return true
			}
		}
		grants := r.grantsOf(key{role: role, namespace: bound.Binding.Namespace})
		if slices.ContainsFunc(grants, func(g grant) bool { return g.right.countsTogether() }) { // which are not vertices
			return true
		}
	}
	for _, s := range bound.Subjects {
		user, group, ok := principal(s)
		namespace, name, isAccount := accountOfUser(user)
		switch {
		case !ok:
		case isAccount && r.hasAccount(namespace, name),
			// The roles of accounts in NodeScopes are not vertices.
			r.enforced > 0 && (group == authenticated || strings.HasPrefix(group, allServiceAccounts)),
			user != "" && r.has(key{kind: isUser, name: user}),
			user != "" && r.has(key{kind: isFact, name: userWithGroups, namespace: user}),
			group != "" && r.has(key{kind: isGroup, name: group}):
			return true
		}
	}
	return false
}

// hasAccount reports whether a service account may lead to the goal.
func (r *reducer) hasAccount(namespace, name string) bool {
	return r.scopeOf(namespace, name) != nil || r.has(key{kind: isServiceAccount, namespace: namespace, name: name})
}

// accounts are those that lead to the goal, and those that bindings name: without them they
// could be created.
func (r *reducer) accounts(bindings []rbac.BoundRole) []inventory.Name {
	named := map[inventory.Name]bool{}
	for _, bound := range bindings {
		for _, s := range bound.Subjects {
			user, _, _ := principal(s)
			if namespace, name, ok := accountOfUser(user); ok {
				named[inventory.Name{Namespace: namespace, Name: name}] = true
			}
		}
	}
	var all []inventory.Name
	for _, namespace := range r.namespaces {
		for _, name := range r.builder.accounts[namespace] {
			n := inventory.Name{Namespace: namespace, Name: name}
			if named[n] || r.hasAccount(namespace, name) {
				all = append(all, n)
			}
		}
	}
	return all
}

// secrets are those that lead to the goal, and those that rights name: without them they could
// be created.
func (r *reducer) secrets() []inventory.Secret {
	var all []inventory.Secret
	for _, namespace := range r.namespaces {
		for _, s := range r.builder.secrets[namespace] {
			named := r.builder.has(key{kind: isRight, variant: uint16(readSecrets), namespace: namespace, name: s.Name.Name})
			if named || r.has(key{kind: isSecret, namespace: namespace, name: s.Name.Name}) {
				all = append(all, s)
			}
		}
	}
	return all
}

// pods are those that lead to the goal, or bring something that does, and one of each workload: without it, the workload would
// not be known.
func (r *reducer) pods() []*inventory.Pod {
	changed := map[string]bool{} // namespaces in which a container may be added to pods
	for v, k := range r.keys {
		if k.kind == isRight && right(k.variant) == addContainers && r.leads[v] {
			changed[k.namespace] = true
		}
	}
	type made struct {
		namespace string
		inventory.Workload
	}
	brings, known := map[*inventory.Template]bool{}, map[made]bool{}
	var all []*inventory.Pod
	for i, p := range r.builder.pods {
		needed, seen := brings[p.Template]
		if !seen {
			needed = r.brings(p) || changed[p.Namespace]
			brings[p.Template] = needed
		}
		of := made{p.Namespace, p.Workload}
		if needed || r.leads[r.podVertex(int32(i))] || p.Workload.Resource != "" && !known[of] {
			all, known[of] = append(all, p), true
		}
	}
	return all
}

// brings reports whether what a pod names leads to the goal.
func (r *reducer) brings(p *inventory.Pod) bool {
	return p.MayRunControlPlane() || p.ServiceAccount != "" && r.hasAccount(p.Namespace, p.ServiceAccount) ||
		slices.ContainsFunc(p.Secrets, func(s string) bool { return r.has(key{kind: isSecret, namespace: p.Namespace, name: s}) })
}
