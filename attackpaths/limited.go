package attackpaths

import (
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// limited is the vertex of an identity, or of each identity that a fact leads to, as far as a
// right to impersonate covers its requests; none if it can do nothing.
func (b *builder) limited(of vertex, on grant) vertex {
	if of == none {
		return none
	}
	k := key{kind: isLimited, variant: uint16(on.right), namespace: on.namespace, name: on.name, of: of}
	if v, ok := b.index[k]; ok {
		return v
	}
	if b.empty[k] || !b.kinds[on.right].on.suits(b.keys[of]) {
		return none
	}
	edges, x := b.limitedEdges(of, on)
	if len(edges) == 0 && x == nil {
		b.empty[k] = true
		return none
	}
	v := b.vertex(k)
	b.out[v] = edges
	if x != nil {
		x.vertex = v
		b.identities = append(b.identities, x)
	}
	return v
}

// limitedEdges leads to what a limited identity can do with one right. The identity has its rights that count together; it is
// nil if there are none.
func (b *builder) limitedEdges(of vertex, on grant) (edges []edge, x *identity) {
	k, kind := b.keys[of], &b.kinds[on.right]
	switch {
	case k.kind == isFact:
		for _, e := range b.out[of] {
			if v := b.limited(e.to, on); v != none {
				edges = append(edges, edge{to: v, arg: -1})
			}
		}
		return edges, nil
	case kind.whole:
		return []edge{{to: of, arg: -1}}, nil
	}
	x = &identity{subjects: b.subjectsOfIdentity(k), rights: map[grant]origin{}, alone: true}
	requests, checked, together := false, false, kind.of.countsTogether()
	for _, p := range b.requestsOf(of) {
		both, ok := p.limit.and(on.limit)
		switch {
		case together && b.kinds[p.right].beside: // the API server checks it beside a request
			checked = true
			x.note(&p, p.limit, "")
		case ok && p.right == kind.of && p.verb == kind.verbs[0]:
			requests = true
			x.note(&p, both, "")
			if p.right.countsAlone() {
				edges = append(edges, edge{to: b.rightVertex(p.right, both.namespace, both.rightName()), arg: p.binding})
			}
		}
	}
	if !requests || !checked {
		x = nil
	}
	if k.kind == isNodeUser {
		edges = append(edges, b.edgesOfNode(of, kind.of, on.limit)...)
	}
	return edges, x
}

// edgesOfNode lead to what the Node authorizer allows to the credential of a node, as far as a right to make these requests
// is limited. The vertex of the credential has its edges.
func (b *builder) edgesOfNode(node vertex, r right, l limit) []edge {
	var edges []edge
	switch r {
	case readSecrets, createToken:
		for _, e := range b.out[node] {
			switch to := b.keys[e.to]; {
			case r == readSecrets && e.row == rowOf(SecretOnNode) && l.covers(to.namespace, to.name),
				r == createToken && e.row == rowOf(TokenOfPodOnNode) && l.covers(b.pods[e.arg].Namespace, b.pods[e.arg].ServiceAccount):
				edges = append(edges, e)
			}
		}
	case createSigningRequests:
		edges = append(edges, edge{to: b.fact(clientRequests, ""), arg: -1})
	case readSigningRequests:
		edges = append(edges, edge{to: b.rightVertex(r, "", l.rightName()), arg: -1})
	}
	return edges
}

// constrained adds the identities that a requester may impersonate for some requests.
func (c *combiner) constrained() {
	for r := impersonateArbitraryNodes; r <= impersonateGroupInfo; r++ {
		ons, with := c.haveOn(requestKinds[r].mode), [][]held{nil}
		if len(ons) == 0 {
			continue
		}
		if r == impersonateGroupInfo {
			with = c.someUser()
		}
		for _, rights := range with {
			for _, a := range c.have(r) {
				for _, of := range c.impersonable(a) {
					c.limitedTo(of, ons, append(slices.Clone(rights), a)...)
				}
			}
		}
	}
}

// impersonable are the identities that a right to impersonate in a mode is about, also service accounts that no object stands
// for. Four groups in one request are checked as "*" first.
func (c *combiner) impersonable(a held) []vertex {
	every := [...]string{everyNodeUser, everyAccountName, everyUser, everyGroup}[a.right-impersonateArbitraryNodes]
	var all []vertex
	switch {
	case a.name == "", a.name == everyName && every == everyGroup:
		return []vertex{c.impersonatedFact(every, a.namespace)}
	case every == everyNodeUser && c.has(key{kind: isNode, name: a.name}):
		return []vertex{c.asImpersonated(key{kind: isNodeUser, name: nodeUserPrefix + a.name})}
	case every == everyUser && c.has(userKey(a.name)):
		return []vertex{c.asImpersonated(userKey(a.name))}
	case every == everyGroup && a.name != masters:
		return []vertex{c.asImpersonated(key{kind: isGroup, name: a.name})}
	case every == everyAccountName:
		for _, ns := range slices.Sorted(maps.Keys(c.accountNames)) {
			if (a.namespace == "" || a.namespace == ns) && slices.Contains(c.accountNames[ns], a.name) {
				all = append(all, c.asImpersonated(key{kind: isServiceAccount, namespace: ns, name: a.name}))
			}
		}
	}
	return all
}

// someUser lists the rights to impersonate a user that is neither a node nor a service account, with which groups are
// impersonated: one that the identity has, or else those that it can be given.
func (c *combiner) someUser() [][]held {
	var users [][]held
	for _, u := range c.have(impersonateUserInfo) {
		switch {
		case u.name != "" && !plainUser(u.name):
		case u.through == none:
			return [][]held{{u}}
		default:
			users = append(users, []held{u})
		}
	}
	return users
}

// associated adds the node with which a service account's token is associated.
func (c *combiner) associated() {
	ons := c.haveOn(associatedNode)
	for _, a := range c.have(impersonateAssociatedNode) {
		if a.name == "" || a.name == everyName { // the check is for all nodes
			c.limitedTo(c.asImpersonated(c.keys[c.keys[c.who.vertex].of]), ons, a)
		}
	}
}

// limitedTo adds an identity for each kind of request that is covered.
func (c *combiner) limitedTo(of vertex, ons []held, rights ...held) {
	for _, o := range ons {
		c.combine(Impersonate, c.limited(of, o.grant), "", append(slices.Clone(rights), o))
	}
}

// haveOn lists the rights `impersonate-on` of a mode.
func (c *combiner) haveOn(m mode) []held {
	if !c.modes[m] {
		return nil
	}
	return c.haveAny(func(r right) bool { return !r.isCustom() && table[r].on == m })
}

// associates reports whether it matters to all accounts with which node a token is associated.
func (b *builder) associates() bool { return b.modes[associatedNode] }

// expandAssociated gives the account.
func (b *builder) expandAssociated(v vertex, k key) {
	if a := b.scopeOf(k.namespace, k.name); a != nil {
		b.expandToken(v, k, a)
		return
	}
	b.implies(v, b.accountVertex(k.namespace, k.name))
	subjects := b.subjectsOfIdentity(k)
	b.identities = append(b.identities, &identity{
		vertex: v, kind: isAssociated, subjects: subjects, rights: b.rightsOfSubjects(subjects),
	})
}

// dependsOnAssociation is what else decides.
const dependsOnAssociation = "whether the token is of a pod on the node"

// hasToken reports whether a pod mounts a token of its account.
func hasToken(p *inventory.Pod) bool {
	return !p.Mirror && p.ServiceAccount != "" && len(p.Audiences) > 0
}

// impersonated is the identity that a limited identity stands for; nil for one that may make every
// request, which is a holding then, and for many identities.
func (g *Graph) impersonated(v vertex) *Holding {
	k := g.keys[v]
	if k.kind != isLimited || g.kinds[k.variant].whole {
		return nil
	}
	if h, ok := g.keys[k.of].holding(); ok {
		return &h
	}
	return nil
}

// limitedText says who may be impersonated, and for what.
func (g *Graph) limitedText(k key) string {
	of := g.keys[k.of]
	name := of.name
	if of.kind == isServiceAccount {
		name = userOfAccount(of.namespace, of.name)
	}
	kind := &g.kinds[k.variant]
	text := "may impersonate " + name + " in the mode " + kind.on.String()
	if kind.whole {
		return text + " for every request"
	}
	text += " to " + kind.of.withVerb(kind.verbs[0])
	if k.name != "" && k.name != unnamed {
		text += " " + k.name
	}
	if kind.namespaced {
		text += scopeText(k.namespace)
	}
	return text
}
