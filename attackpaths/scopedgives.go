package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// givesParts adds the edges to what parts lead to, and the rights that count together.
func (b *builder) givesParts(v vertex, k key, a *scopedAccount, parts []part, at place) {
	x := &identity{
		vertex: v, subjects: a.subjects, rights: map[ownKey]bool{}, conditions: map[ownKey]string{}, scoped: a,
		impersonated: k.variant == impersonated,
	}
	for i := range parts {
		p := &parts[i]
		switch {
		case x.impersonated && p.impersonates(b):
			continue
		case at.node != "" && !at.chosen && p.isForPods():
			of := key{kind: isRight, variant: uint8(p.right), namespace: p.namespace, name: p.name, of: k.of}
			b.give(v, b.vertex(of), p, "")
			continue
		}
		b.instances(p, at, func(l limit, dependsOn string) {
			x.note(p, l, dependsOn)
			switch {
			case p.on != 0:
			case p.custom >= 0:
				b.givesCustom(v, p, l, dependsOn)
			case p.needs&needsAsNode != 0:
				b.givesAsNode(v, p, l, k.of, dependsOn)
			case p.right.countsAlone():
				b.givesRight(v, p, l, dependsOn)
			}
		})
	}
	if len(x.rights) == 0 && len(x.on) == 0 && len(a.held) == 0 {
		return
	}
	// What each token may do counts together with what needs the node.
	if len(parts) > 0 && at.node != "" || at.chosen {
		for i := range a.others {
			if p := &a.others[i]; !x.impersonated || !p.impersonates(b) {
				x.note(p, p.limit, p.conditionOnAnyNode())
			}
		}
	}
	x.sortOn()
	b.identities = append(b.identities, x)
}

// note adds what a part gives that counts together with other rights of an identity.
func (x *identity) note(p *part, l limit, dependsOn string) {
	k := ownKey{p.right, l.namespace, l.rightName()}
	switch {
	case p.on != 0:
		x.on = append(x.on, onRight{p.on, l})
		return
	case p.custom >= 0 || p.right < firstOwn || p.needs&needsAsNode != 0:
		return
	case dependsOn == "":
		delete(x.conditions, k)
	case !x.rights[k]:
		x.conditions[k] = dependsOn
	}
	x.rights[k] = true
}

func (x *identity) sortOn() {
	slices.SortFunc(x.on, onRight.compare)
	x.on = slices.Compact(x.on)
}

// conditionOnAnyNode is what decides whether each token has a right, whatever its node.
func (p *part) conditionOnAnyNode() string {
	if p.needs&(needsPodName|needsNewPodName) != 0 {
		return dependsOnPodName
	}
	return ""
}

// isForPods reports whether a part is a right on the pods of a node, which is one vertex for all of them.
func (p *part) isForPods() bool {
	ofPods := p.right == execPods || p.right == attachPods || p.right == patchPods
	return p.on == 0 && p.custom < 0 && p.needs == needsPod && ofPods
}

// impersonates reports whether a part lets others be impersonated.
func (p *part) impersonates(b *builder) bool {
	switch {
	case p.on != 0:
		return true
	case p.custom >= 0:
		return b.requests[p.custom].impersonates
	}
	return p.right.impersonates()
}

// passing is an edge of a token that scopes let pass: its ends, or for all that the node's credential has by a
// technique only the first and the technique.
type passing struct {
	from, to vertex
	row      row
}

// passage is the verb that scopes let pass, and their rules that do.
type passage struct{ verb, rules string }

// give adds an edge to what a part leads to, and notes the scopes that let it pass.
func (b *builder) give(v, to vertex, p *part, dependsOn string) {
	b.out[v] = append(b.out[v], edge{to: to, arg: p.binding, dependsOn: b.condition(dependsOn)})
	b.passedBy[passing{from: v, to: to}] = passage{p.verb, p.rules}
}

func (b *builder) givesRight(v vertex, p *part, l limit, dependsOn string) {
	b.give(v, b.rightVertex(p.right, l.namespace, l.rightName()), p, dependsOn)
}

// givesAsNode gives what the Node authorizer allows to the credential of a node, as far as RBAC grants it to the
// account.
func (b *builder) givesAsNode(v vertex, p *part, l limit, node vertex, dependsOn string) {
	switch p.right {
	case readSecrets:
		b.givesOfNode(v, p, node, rowOf(SecretOnNode), dependsOn, func(e edge) bool {
			return l.covers(b.keys[e.to].namespace, b.keys[e.to].name)
		})
	case createToken:
		b.givesOfNode(v, p, node, rowOf(TokenOfPodOnNode), dependsOn, func(e edge) bool {
			return l.covers(b.pods[e.arg].Namespace, b.pods[e.arg].ServiceAccount)
		})
	case createSigningRequests:
		b.give(v, b.fact(clientRequests, ""), p, dependsOn)
	case readSigningRequests:
		b.givesRight(v, p, l, dependsOn)
	}
}

// givesOfNode gives what the credential of a node has by a technique: nothing if the node need not exist. Its vertex
// is older than those of tokens on the node, so that it has its edges.
func (b *builder) givesOfNode(v vertex, p *part, node vertex, row row, dependsOn string, covers func(edge) bool) {
	for _, e := range b.out[node] {
		if e.row == row && covers(e) {
			e.dependsOn = b.condition(allOf(dependsOn, b.conditions[e.dependsOn]))
			b.out[v] = append(b.out[v], e)
		}
	}
	b.passedBy[passing{v, none, row}] = passage{p.verb, p.rules}
}

// tokenOfPod is the account of a pod with a token that its node requests for the pod.
func (b *builder) tokenOfPod(p *inventory.Pod, node string) vertex {
	t := b.templateOf(p)
	if t.scoped != nil {
		return b.tokenVertex(t.scoped, b.nodeUserVertex(node), 0)
	}
	return t.account
}

// givesCustom gives what a request of a custom technique leads to.
func (b *builder) givesCustom(v vertex, p *part, l limit, dependsOn string) {
	r := &b.requests[p.custom]
	switch {
	case l.name == unnamed || l.name == r.Name:
		l.name = ""
	case l.name != "" && r.Name != "":
		return // another object
	}
	if p.needs&needsAsNode != 0 {
		dependsOn = allOf(dependsOn, dependsOnAsNode)
	}
	if !r.holdsIn(l.namespace) {
		return
	}
	k := key{kind: isCustom, variant: customRight, namespace: l.namespace, name: l.name, custom: p.custom}
	b.give(v, b.vertex(k), p, dependsOn)
}

// ownCertificate gives a node's credential to a token of the node that may have requests for it
// approved: a request that the account may make as the node is one for the node itself.
func (b *builder) ownCertificate(v vertex, a *scopedAccount, node string) {
	asNode, approved := false, false
	names := []string{""}
	for _, p := range slices.Concat(a.perNode, a.others) {
		switch {
		case p.on != 0 || p.custom >= 0:
		case p.right == createSigningRequests:
			asNode = asNode || p.needs&needsAsNode != 0
		case p.right == autoApprove:
			approved = true
		case p.right == readSigningRequests && p.name != "" && p.name != unnamed:
			names = append(names, p.name)
		}
	}
	if !asNode || !approved {
		return
	}
	for _, name := range names {
		b.together(ApproveCertificate, b.nodeUserVertex(node), b.guardsOf(createSigningRequests, ""),
			v, b.rightVertex(readSigningRequests, "", name))
	}
}

func (b *builder) nodeUserVertex(node string) vertex {
	return b.vertex(key{kind: isNodeUser, name: nodeUserPrefix + node})
}
