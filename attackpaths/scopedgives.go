package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// givesParts adds the edges to what parts lead to, and the rights that count together.
func (b *builder) givesParts(v vertex, k key, a *scopedAccount, parts []part, at place) {
	x := &identity{
		vertex: v, subjects: a.subjects, rights: map[grant]origin{}, scoped: a,
		impersonated: k.variant == impersonated,
	}
	for i := range parts {
		p := &parts[i]
		forPods := p.needs == needsPod && (p.right == execPods || p.right == attachPods || p.right == patchPods)
		switch {
		case x.impersonated && b.kinds[p.right].impersonates():
			continue
		case at.node != "" && !at.chosen && forPods: // one vertex for all pods of the node
			of := key{kind: isRight, variant: uint16(p.right), namespace: p.namespace, name: p.name, of: k.of}
			b.give(v, b.vertex(of), p, "")
			continue
		}
		b.instances(p, at, func(l limit, dependsOn string) {
			x.note(p, l, dependsOn)
			switch {
			case p.right.isCustom():
				b.givesCustom(v, p, l, dependsOn)
			case p.needs&needsAsNode != 0:
				b.givesAsNode(v, p, l, k.of, dependsOn)
			case p.right.countsAlone():
				b.give(v, b.rightVertex(p.right, l.namespace, l.rightName()), p, dependsOn)
			}
		})
	}
	if len(x.rights) == 0 && len(a.held) == 0 {
		return
	}
	// What each token may do counts together with what needs the node.
	if len(parts) > 0 && at.node != "" || at.chosen {
		for i := range a.others {
			p, dependsOn := &a.others[i], ""
			if p.needs&(needsPodName|needsNewPodName) != 0 {
				dependsOn = dependsOnPodName
			}
			if !x.impersonated || !b.kinds[p.right].impersonates() {
				x.note(p, p.limit, dependsOn)
			}
		}
	}
	b.identities = append(b.identities, x)
}

// note adds what a part gives that counts together with other rights of an identity.
func (x *identity) note(p *part, l limit, dependsOn string) {
	k := grant{p.right, l}
	switch {
	case !p.right.countsTogether():
		return
	case table[p.right].on != 0:
		dependsOn = ""
	case p.needs&needsAsNode != 0:
		return
	default:
		k.name = l.rightName()
	}
	if from, known := x.rights[k]; !known || from.dependsOn != "" && dependsOn == "" {
		x.rights[k] = origin{p.binding, dependsOn}
	}
}

// passing are the ends of an edge of a token that scopes let pass.
type passing struct{ from, to vertex }

// passage is the verb that scopes let pass, and their rules that do.
type passage struct{ verb, rules string }

// give adds an edge to what a part leads to, and notes the scopes that let it pass.
func (b *builder) give(v, to vertex, p *part, dependsOn string) {
	b.out[v] = append(b.out[v], edge{to: to, arg: p.binding, dependsOn: b.condition(dependsOn)})
	b.passedBy[passing{v, to}] = passage{p.verb, p.rules}
}

// givesAsNode gives what the Node authorizer allows to the credential of a node, as far as RBAC grants it to the
// account: nothing of a node that need not exist. Its vertex is older than the vertices of tokens on the node.
func (b *builder) givesAsNode(v vertex, p *part, l limit, node vertex, dependsOn string) {
	for _, e := range b.edgesOfNode(node, p.right, l) {
		e.dependsOn = b.condition(allOf(dependsOn, b.conditions[e.dependsOn]))
		if e.row == 0 {
			e.arg = p.binding
		}
		b.out[v] = append(b.out[v], e)
		b.passedBy[passing{v, e.to}] = passage{p.verb, p.rules}
	}
}

// tokenOfPod is the account of a pod with a token that its node requests for the pod.
func (b *builder) tokenOfPod(p *inventory.Pod, node string) vertex {
	t := b.templateOf(p)
	if t.scoped != nil {
		return b.tokenVertex(p.Namespace, p.ServiceAccount, b.nodeUserVertex(node), 0)
	}
	return t.account
}

// givesCustom gives what a request of a custom technique leads to.
func (b *builder) givesCustom(v vertex, p *part, l limit, dependsOn string) {
	kind := &b.kinds[p.right]
	switch {
	case l.name == unnamed || l.name == kind.name:
		l.name = ""
	case l.name != "" && kind.name != "" || !kind.holdsIn(l.namespace):
		return // another object
	}
	if p.needs&needsAsNode != 0 {
		dependsOn = allOf(dependsOn, dependsOnAsNode)
	}
	b.give(v, b.rightVertex(p.right, l.namespace, l.name), p, dependsOn)
}

// ownCertificate gives a node's credential to a token of the node that may have requests for it
// approved: a request that the account may make as the node is one for the node itself.
func (b *builder) ownCertificate(v vertex, a *scopedAccount, node string) {
	asNode, approved := false, false
	names := []string{""}
	for _, p := range slices.Concat(a.perNode, a.others) {
		switch {
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
