package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
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
	b.edges.AddEdge(v, edge{To: to, Arg: p.binding, DependsOn: b.condition(dependsOn)})
	b.passedBy[passing{v, to}] = passage{p.verb, p.rules}
}

// givesAsNode gives what the Node authorizer allows to the credential of a node, as far as RBAC grants it to the
// account: nothing of a node that need not exist. Its vertex is older than the vertices of tokens on the node.
func (b *builder) givesAsNode(v vertex, p *part, l limit, node vertex, dependsOn string) {
	for _, e := range b.edgesOfNode(node, p.right, l) {
		e.DependsOn = b.condition(allOf(dependsOn, b.conditions[e.DependsOn]))
		if e.Row == 0 {
			e.Arg = p.binding
		}
		b.edges.AddEdge(v, e)
		b.passedBy[passing{v, e.To}] = passage{p.verb, p.rules}
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

const nodeUserPrefix = nodeidentity.UserPrefix

// part is what a binding grants of a right with one verb, as far as scopes let it pass.
type part struct {
	right right
	pass
	verb    string
	binding int32
}

// place is the node of a token. A chosen node need not exist; it has any name if it has none.
type place struct {
	node   string
	chosen bool
}

// partsOf finds what RBAC grants to an account and its scopes let pass. Subjects of bindings must have
// been added.
func (b *builder) partsOf(a *scopedAccount) {
	scopes := a.rules
	if a.rules = nil; scopes == nil {
		return
	}
	a.subjects = b.subjectsOfIdentity(key{kind: isServiceAccount, namespace: a.namespace, name: a.name})
	b.eachRole(a.subjects, func(role key, binding int32) {
		if h := (heldRole{role.role, binding, role.namespace}); !slices.Contains(a.held, h) {
			a.held = append(a.held, h)
		}
	})
	passing, seen := map[asked][]pass{}, map[part]bool{}
	b.eachPart(a.subjects, func(p part) {
		q := asked{&b.kinds[p.right], p.verb}
		if _, ok := passing[q]; !ok {
			passing[q] = []pass{{}}
			for i := range scopes {
				passing[q] = combinePasses(passing[q], b.passes(&scopes[i], q))
			}
		}
		for _, both := range combinePasses([]pass{p.pass}, passing[q]) {
			id := part{right: p.right, pass: both}
			if id.rules = ""; !seen[id] {
				seen[id] = true
				a.add(part{p.right, both, p.verb, p.binding})
			}
		}
	})
}

// add puts a part where it belongs. Whoever creates an object chooses its name, and whoever selects objects the
// selector, so that each token may do so.
func (a *scopedAccount) add(p part) {
	ofNode := p.needs &^ needsSelector
	if ofNode&^(needsNewName|needsPodName|needsNewPodName) == 0 { // any node can create a mirror pod
		a.others = append(a.others, p)
	}
	if ofNode != 0 && (ofNode != needsNewName || p.namesNewObject()) {
		a.perNode = append(a.perNode, p)
	}
}

// eachPart calls do for what bindings grant to subjects.
func (b *builder) eachPart(subjects []vertex, do func(part)) {
	b.eachRole(subjects, func(role key, binding int32) {
		for _, p := range b.partsOfRole(role.role) {
			if kind := &b.kinds[p.right]; kind.holdsIn(role.namespace) && (role.variant != restricted || !kind.refused) {
				p.namespace, p.binding = role.namespace, binding
				do(p)
			}
		}
	})
}

// partsOfRole lists what a role grants where it is held, verb by verb.
func (b *builder) partsOfRole(role int32) []part {
	r := b.rightsOfRole(role)
	if r.parts != nil {
		return r.parts
	}
	r.parts = []part{}
	rules := b.roles[role].Rules
	for i := range b.kinds {
		of, kind := right(i), &b.kinds[i]
		if of.isPart() && !b.isNamed(of.whole()) || kind.on != 0 && !b.modes[kind.on] {
			continue
		}
		for _, verb := range kind.verbs {
			for j := range rules {
				for _, name := range kind.namesIn(&rules[j], verb) {
					r.parts = append(r.parts, part{right: of, pass: pass{limit: limit{name: name}}, verb: verb})
				}
			}
		}
	}
	return r.parts
}

// instances are what a part is with the token of a node: limits, and what else decides.
func (b *builder) instances(p *part, at place, do func(l limit, dependsOn string)) {
	l, dependsOn := p.limit, ""
	anyName := at.chosen && at.node == ""
	if p.needs&needsNewName != 0 && !anyName && p.namesNewObject() {
		dependsOn = dependsOnNodeName
	}
	if p.needs&needsSelector != 0 {
		dependsOn = allOf(dependsOn, dependsOnSelector)
	}
	if p.needs&needsName != 0 && !anyName {
		named, ok := l.and(limit{name: at.node})
		if !ok {
			return
		}
		l = named
	}
	const ofPods = needsPod | needsPodName | needsNewPodName
	if p.needs&ofPods != 0 {
		b.instancesOfPods(p, l, at, dependsOn, do)
	} else {
		do(l, dependsOn)
	}
}

// instancesOfPods are what a part is that pods on the node limit. An object that is named like none of them is
// possible: a node can create a mirror pod with a name that no pod has.
func (b *builder) instancesOfPods(p *part, l limit, at place, dependsOn string, do func(l limit, dependsOn string)) {
	possible, onPods := allOf(dependsOn, dependsOnPodName), dependsOn
	creates := p.needs&needsNewPodName != 0
	if creates && p.namesNewObject() {
		onPods = possible
	}
	var pods []int32 // none are known of a node that need not exist, or that is not known
	if !at.chosen {
		pods = b.podsOn[at.node]
	}
	for _, i := range pods {
		pod := b.pods[i]
		of := limit{pod.Namespace, pod.Name.Name}
		if p.needs&needsNewName != 0 && of.name != at.node {
			continue // the new object needs both names
		}
		if creates {
			of.name = l.name
		}
		if l.covers(of.namespace, of.name) {
			do(of, onPods)
		}
	}
	if p.needs&needsPod == 0 {
		do(l, possible)
	}
}

// namesNewObject reports whether it matters which name an object has that is created.
func (p *part) namesNewObject() bool {
	switch p.right.whole() {
	case createSecrets, createConfigMaps, createAccounts:
		return true
	}
	return p.right.isCustom()
}

// podsOnNode are the pods of a node that a right of its tokens is about.
func (b *builder) podsOnNode(k key) []int32 {
	var all []int32
	of := limit{k.namespace, k.name}
	for _, i := range b.podsOn[b.keys[k.of].name[len(nodeUserPrefix):]] {
		if p := b.pods[i]; of.covers(p.Namespace, p.Name.Name) {
			all = append(all, i)
		}
	}
	return all
}
