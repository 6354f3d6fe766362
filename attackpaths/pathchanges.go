package attackpaths

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// pathChanges finds the changes that could end one path to cluster-admin, and more: a change that
// alone ends all paths of a node is on each of them, so that one path of it is enough.
type pathChanges struct {
	*builder
	// marks is the search back from the goal, and from what leads there together with something else.
	marks    *search.Solver
	possible bool
	who      map[vertex]*identity
	// from are the changes on the path from a marked vertex.
	from map[vertex][]changeKey
	// step collects the changes of one step.
	step []changeKey
}

// changesOf lists for each node that is wanted the changes on one of its paths. Each of them reaches the goal.
func (b *builder) changesOf(possible bool, wanted map[vertex]bool) map[vertex][]changeKey {
	p := &pathChanges{builder: b, possible: possible, who: map[vertex]*identity{}, from: map[vertex][]changeKey{}}
	for _, x := range b.identities {
		p.who[x.vertex] = x
	}
	p.marks = b.edges.Reversed(possible, nil).Solver(true)
	p.marks.Solve(b.goal)
	all := map[vertex][]changeKey{}
	for _, node := range slices.Sorted(maps.Keys(wanted)) {
		if !p.marks.Has(node) {
			p.prove(node)
		}
		all[node] = p.changesFrom(node)
	}
	return all
}

// changesFrom lists the changes on the path from a marked vertex.
func (p *pathChanges) changesFrom(v vertex) []changeKey {
	known, ok := p.from[v]
	to := p.marks.Via(v).From
	if ok || to == none {
		return known
	}
	i := slices.IndexFunc(p.edges.Out[v], func(e edge) bool { return e.To == to && (p.possible || e.DependsOn == 0) })
	p.step = nil
	p.addStep(to, via{From: v, Join: -1, Edge: p.edges.Out[v][i]})
	all := p.step
	for _, change := range p.changesFrom(to) {
		if !slices.Contains(all, change) {
			all = append(all, change)
		}
	}
	p.from[v] = all
	return all
}

// prove finds the changes on the path of a node that needs joins, and marks the vertices of the path that reach the goal
// alone, the last one first: other nodes may share them.
func (p *pathChanges) prove(node vertex) {
	s := p.solver(p.possible)
	defer s.Release()
	s.SolveUntil(node, p.goal)
	for _, v := range slices.Backward(s.Derivation(p.goal)) {
		if p.marks.Has(v) {
			continue
		}
		if s.SolveUntil(v, p.goal); s.Has(p.goal) {
			p.step = nil
			for _, to := range s.Derivation(p.goal) {
				if to != v {
					p.addStep(to, s.Via(to))
				}
			}
			p.from[v] = p.step
			p.marks.Add(v)
		}
	}
}

func (p *pathChanges) add(change changeKey) {
	if !slices.Contains(p.step, change) {
		p.step = append(p.step, change)
	}
}

// addStep adds the changes that could end one step.
func (p *pathChanges) addStep(to vertex, how via) {
	e, from := how.Edge, p.edges.Parts(how)
	ofPod := e.Row != 0 && isOfPod(e.Row)
	switch {
	case e.Row == rowOf(SecretOnNode):
		p.addMountsOnNode(from[0], to)
	case ofPod && p.keys[from[0]].kind != isRight:
		p.addMount(e, to)
		return
	case ofPod: // a right to request any token of the pod's account
		how.Edge.Arg = -1
	case e.Arg >= 0:
		p.addBinding(e.Arg)
	}
	for _, v := range from {
		p.addRightsOf(v, to, how)
		p.addNamespace(v, to, e)
	}
	p.addNamed(to)
	if role := p.keys[to]; e.Row == rowOf(BindRole) { // one of its bindings in the scope may be changed
		p.addBindings(func(bound *rbac.BoundRole) bool {
			return bound.Role == p.roles[role.role].Role && bound.Binding.Namespace == role.namespace
		})
	}
}

func (p *pathChanges) addBinding(place int32) {
	p.add(changeKey{kind: takeSubject, object: verdict.Object(p.bindings[place].Binding), rule: allSubjects})
}

func (p *pathChanges) addBindings(wanted func(*rbac.BoundRole) bool) {
	for i := range p.bindings {
		if wanted(&p.bindings[i]) {
			p.addBinding(int32(i))
		}
	}
}

// addMount adds what a pod mounts.
func (p *pathChanges) addMount(e edge, to vertex) {
	switch k := p.keys[to]; {
	case e.Arg < 0:
	case k.kind == isSecret:
		p.add(mountIn(p.pods[e.Arg], k.name))
	case k.kind == isServiceAccount || k.kind == isAssociated:
		p.add(mountIn(p.pods[e.Arg], ""))
	}
}

// addMountsOnNode adds the mounts because of which a node's credential may read a secret.
func (p *pathChanges) addMountsOnNode(credential, secret vertex) {
	for _, i := range p.podsOn[p.nodeOf(credential)] {
		if pod := p.pods[i]; pod.Namespace == p.keys[secret].namespace && slices.Contains(pod.Secrets, p.keys[secret].name) {
			p.add(mountIn(pod, p.keys[secret].name))
		}
	}
}

// addNamespace adds the namespace whose Pod Security level lets a step be made.
func (p *pathChanges) addNamespace(v, to vertex, e edge) {
	k, namespace := p.keys[v], ""
	switch {
	case k.kind == isNamespace && (e.Row == rowOf(VolumeControl) || p.keys[to].name == everyNode):
		namespace = k.name
	case k.kind == isRight && (right(k.variant) == addContainers || right(k.variant) == patchPods):
		namespace = k.namespace
		if k.of != 0 { // of all pods on a node
			namespace = p.keys[to].namespace
		}
	}
	if level := p.level(namespace); level != "" && level != psa.LevelRestricted {
		p.add(changeKey{kind: setLevel, object: Holding{Kind: Namespace, Name: namespace}, level: psa.LevelRestricted})
	}
}

// addNamed adds the bindings without which an identity is not known, so that it is not impersonated
// or created.
func (p *pathChanges) addNamed(to vertex) {
	var of key
	switch k := p.keys[to]; {
	case k.kind == isUser && k.variant != given:
		of = subjectKey(k.name, "", anybody)
	case k.kind == isFact && k.name == userWithGroups:
		of = subjectKey(k.namespace, "", anybody)
	case k.kind == isGroup:
		of = subjectKey("", k.name, anybody)
	case (k.kind == isServiceAccount || k.kind == isAssociated) && !slices.Contains(p.accounts[k.namespace], k.name):
		of = subjectKey(nodeidentity.ServiceAccountUser(k.namespace, k.name), "", anybody)
	default:
		return
	}
	p.addBindings(func(bound *rbac.BoundRole) bool {
		return slices.ContainsFunc(bound.Subjects, func(s rbacv1.Subject) bool {
			user, group, ok := principal(s)
			return ok && subjectKey(user, group, anybody) == of
		})
	})
}

// addRightsOf adds the rules, and the bindings that the step does not name, that may give what a vertex needs for a step.
func (p *pathChanges) addRightsOf(v, to vertex, how via) {
	k, target := p.keys[v], p.keys[to]
	role, ok := k.role, k.kind == isRole
	if !ok && how.Edge.Arg >= 0 {
		role, ok = p.objects.roleOf(p.bindings[how.Edge.Arg].Role)
	}
	if ok {
		p.addRules(role, func(rule *rbacv1.PolicyRule) bool { return p.gives(rule, target) })
	}
	if how.Join < 0 && how.Edge.Row == 0 && target.kind != isRight {
		return
	}
	// Rights that count together are not vertices of their own, and an account in scopes may bind each role that it holds.
	p.eachRole(p.subjectsOf(k, v), func(role key, binding int32) {
		combined := func(rule *rbacv1.PolicyRule) bool {
			rights := p.rightsOf([]rbacv1.PolicyRule{*rule}, role.namespace != "")
			return slices.ContainsFunc(rights, func(g grant) bool { return g.right.countsTogether() })
		}
		if role.kind == isRole && (p.addRules(role.role, combined) || target.kind == isRole && role.role == target.role) {
			p.addBinding(binding)
		}
	})
}

// subjectsOf are the subjects of an identity.
func (p *pathChanges) subjectsOf(k key, v vertex) []vertex {
	switch {
	case k.kind != isServiceAccount && p.isScopedAccount(k):
		return p.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}].subjects
	case k.kind == isAssociated:
		return p.subjectsOfIdentity(k)
	case p.who[v] != nil:
		return p.who[v].subjects
	}
	return nil
}

// addRules adds the rules of a role that give something, and reports whether it has some. The controller restores the rules
// of aggregated roles, so that the roles that state them are changed. The role cluster-admin keeps its rules.
func (p *pathChanges) addRules(role int32, gives func(*rbacv1.PolicyRule) bool) (found bool) {
	r := &p.roles[role]
	stays := int(role) == len(p.roles)-1 || r.Sources != nil || r.Role.Namespace == "" && r.Role.Name == clusterAdmin
	for i := range r.Rules {
		if gives(&r.Rules[i]) {
			found = true
			if !stays {
				p.add(changeKey{kind: removeRule, object: verdict.Object(r.Role), rule: i})
			}
		}
	}
	for _, source := range r.Sources {
		p.addRules(p.objects.clusterRole(source), gives)
	}
	return found
}

// gives reports whether a rule may give what a vertex leads to, for some name.
func (p *pathChanges) gives(rule *rbacv1.PolicyRule, target key) bool {
	if target.kind == isClusterAdmin {
		return grantsEverything(rule)
	}
	return (target.kind == isRight || target.kind == isOwnRight) && len(p.kinds[target.variant].namesBy(rule)) > 0
}
