package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// pathChanges finds the changes that could end one path to cluster-admin, and more: a change that
// alone ends all paths of a node is on each of them, so that one path of it is enough.
type pathChanges struct {
	*builder
	marks    *reverse
	possible bool
	who      map[vertex]*identity
	// from are the changes on the path from a marked vertex.
	from map[vertex][]changeKey
	// step collects the changes of one step.
	step []changeKey
}

// changesOf lists for each node that is wanted the changes on one of its paths.
func (b *builder) changesOf(possible bool, wanted map[vertex]bool) map[vertex][]changeKey {
	p := &pathChanges{builder: b, possible: possible, who: map[vertex]*identity{}, from: map[vertex][]changeKey{}}
	for _, x := range b.identities {
		p.who[x.vertex] = x
	}
	p.marks = b.markNodes(possible, b.Graph.groups, wanted, p.prove)
	all := map[vertex][]changeKey{}
	for node := range wanted {
		if p.marks.marked[node] {
			all[node] = p.changesFrom(node)
		}
	}
	return all
}

// changesFrom lists the changes on the path from a marked vertex.
func (p *pathChanges) changesFrom(v vertex) []changeKey {
	known, ok := p.from[v]
	if ok || p.marks.next[v] == none {
		return known
	}
	to := p.marks.next[v]
	i := slices.IndexFunc(p.out[v], func(e edge) bool { return e.to == to && (p.possible || e.dependsOn == 0) })
	p.step = nil
	p.addStep(to, via{from: v, join: -1, edge: p.out[v][i]})
	all := p.step
	for _, change := range p.changesFrom(to) {
		if !slices.Contains(all, change) {
			all = append(all, change)
		}
	}
	p.from[v] = all
	return all
}

// prove finds the changes on the path of a node that needs joins, and marks the vertices through
// which all of that path leads, the last one first: other nodes may share them.
func (p *pathChanges) prove(r *reverse, node vertex) {
	s := p.solver(p.possible)
	defer p.release(s)
	s.solveUntil(node, p.goal)
	for _, v := range slices.Backward(s.derivation(p.goal)) {
		if r.marked[v] {
			continue
		}
		if after, ok := s.derivedFrom(v, p.goal); ok {
			p.step = nil
			for _, to := range after {
				p.addStep(to, s.via[to])
			}
			p.from[v] = p.step
			r.mark(v)
		}
	}
}

// derivedFrom lists the vertices of a derivation that come after one; false if the derivation needs
// others than this one.
func (s *solver) derivedFrom(start, end vertex) (after []vertex, ok bool) {
	seen, ok := map[vertex]bool{start: true}, true
	var visit func(vertex)
	visit = func(v vertex) {
		if seen[v] {
			return
		}
		seen[v] = true
		after = append(after, v)
		switch how := s.via[v]; {
		case how.join >= 0:
			for _, from := range s.joins[how.join].from {
				visit(from)
			}
		case how.from != none:
			visit(how.from)
		default:
			ok = false
		}
	}
	visit(end)
	return after, ok
}

func (p *pathChanges) add(change changeKey) {
	if !slices.Contains(p.step, change) {
		p.step = append(p.step, change)
	}
}

// addStep adds the changes that could end one step.
func (p *pathChanges) addStep(to vertex, how via) {
	e, from := how.edge, []vertex{how.from}
	if how.join >= 0 {
		from = p.joins[how.join].from
	}
	switch {
	case e.row == rowOf(SecretOnNode):
		p.addMountsOnNode(from[0], to)
	case e.row != 0 && e.row.ofPod() && p.keys[from[0]].kind != isRight:
		p.addMount(e, to)
		return
	case e.arg >= 0:
		p.addBinding(e.arg)
	}
	for _, v := range from {
		p.addRightsOf(v, to, how)
		p.addNamespace(v, to, e)
	}
	p.addNamed(to)
	if role := p.keys[to]; e.row == rowOf(BindRole) { // one of its bindings in the scope may be changed
		p.addBindings(func(bound *rbac.BoundRole) bool {
			return bound.Role == p.roles[role.role].Role && bound.Binding.Namespace == role.namespace
		})
	}
}

func (p *pathChanges) addBinding(place int32) {
	p.add(changeKey{kind: takeSubject, object: objectOf(p.bindings[place].Binding), rule: allSubjects})
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
	if e.arg < 0 {
		return
	}
	switch k := p.keys[to]; k.kind {
	case isServiceAccount, isAssociated:
		p.add(mountIn(p.pods[e.arg], ""))
	case isSecret:
		p.add(mountIn(p.pods[e.arg], k.name))
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
	case k.kind == isNamespace && (e.row == rowOf(VolumeControl) || p.keys[to].name == everyNode):
		namespace = k.name
	case k.kind == isRight && (right(k.variant) == addContainers || right(k.variant) == patchPods):
		namespace = k.namespace
		if k.of != 0 { // of all pods on a node
			namespace = p.keys[to].namespace
		}
	}
	if _, exists := p.labels[namespace]; exists && p.level(namespace) != psa.LevelRestricted {
		p.add(changeKey{kind: setLevel, object: Holding{Kind: Namespace, Name: namespace}, level: psa.LevelRestricted})
	}
}

// addNamed adds the bindings without which an identity is not known, so that it is not impersonated
// or created.
func (p *pathChanges) addNamed(to vertex) {
	k := p.keys[to]
	user, group := "", ""
	switch {
	case k.kind == isUser && k.variant != given, k.kind == isFact && k.name == userWithGroups:
		user = k.name
		if k.kind == isFact {
			user = k.namespace
		}
	case k.kind == isGroup:
		group = k.name
	case (k.kind == isServiceAccount || k.kind == isAssociated) && !slices.Contains(p.accounts[k.namespace], k.name):
		user = userOfAccount(k.namespace, k.name)
	}
	if user == "" && group == "" {
		return
	}
	p.addBindings(func(bound *rbac.BoundRole) bool {
		return slices.ContainsFunc(bound.Subjects, func(s rbacv1.Subject) bool {
			u, g, ok := principal(s)
			return ok && u == user && g == group
		})
	})
}
