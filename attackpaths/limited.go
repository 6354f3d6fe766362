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
	edges, rights := b.limitedEdges(of, on), b.limitedRights(of, on)
	if len(edges) == 0 && len(rights) == 0 {
		b.empty[k] = true
		return none
	}
	v := b.vertex(k)
	b.out[v] = edges
	if len(rights) > 0 {
		b.identities = append(b.identities, &identity{vertex: v, subjects: b.targetOf(of).subjects, rights: rights, alone: true})
	}
	return v
}

// limitedEdges leads to what a limited identity can do with one right.
func (b *builder) limitedEdges(of vertex, on grant) []edge {
	var edges []edge
	k := b.keys[of]
	switch {
	case k.kind == isFact:
		for _, e := range b.out[of] {
			if v := b.limited(e.to, on); v != none {
				edges = append(edges, edge{to: v, arg: -1})
			}
		}
		return edges
	case b.kinds[on.right].whole:
		return []edge{{to: of, arg: -1}}
	}
	r := b.kinds[on.right].of
	for _, g := range b.targetOf(of).requests {
		if both, ok := g.and(on.limit); ok && g.right == on.right.request() && r.countsAlone() {
			edges = append(edges, edge{to: b.rightVertex(r, both.namespace, both.rightName()), arg: g.binding})
		}
	}
	if k.kind == isNodeUser {
		edges = append(edges, b.edgesOfNode(of, r, on.limit)...)
	}
	return edges
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

// limitedRights are the rights of a limited identity that count together.
func (b *builder) limitedRights(of vertex, on grant) map[grant]origin {
	r := b.kinds[on.right].of
	if b.kinds[on.right].whole || !r.countsTogether() || b.keys[of].kind == isFact {
		return nil
	}
	rights := map[grant]origin{}
	t := b.targetOf(of)
	for _, g := range t.requests {
		both, ok := g.and(on.limit)
		k := grant{r, limit{both.namespace, both.rightName()}}
		if _, known := rights[k]; ok && !known && g.right == on.right.request() {
			rights[k] = origin{binding: g.binding}
		}
	}
	if len(rights) == 0 || len(t.checked) == 0 {
		return nil
	}
	maps.Copy(rights, t.checked)
	return rights
}

// constrained adds the identities that a requester may impersonate for some requests.
func (c *combiner) constrained() {
	if ons := c.haveOn(arbitraryNode); len(ons) > 0 {
		for _, a := range c.have(impersonateArbitraryNodes) {
			if a.name == "" {
				c.limitedTo(c.impersonatedFact(everyNodeUser, ""), ons, a)
			} else if c.has(key{kind: isNode, name: a.name}) {
				c.limitedTo(c.asImpersonated(key{kind: isNodeUser, name: nodeUserPrefix + a.name}), ons, a)
			}
		}
	}
	if ons := c.haveOn(serviceAccountMode); len(ons) > 0 {
		for _, a := range c.have(impersonateAccountsOnly) {
			c.limitedAccounts(ons, a)
		}
	}
	if ons := c.haveOn(userInfoMode); len(ons) > 0 {
		for _, a := range c.have(impersonateUserInfo) {
			if a.name == "" {
				c.limitedTo(c.impersonatedFact(everyUser, ""), ons, a)
			} else if c.users[a.name] {
				c.limitedTo(c.asImpersonated(userKey(a.name)), ons, a)
			}
		}
		c.limitedGroups(ons)
	}
}

// limitedAccounts gives service accounts, also those that no object stands for.
func (c *combiner) limitedAccounts(ons []held, a held) {
	if a.name == "" {
		c.limitedTo(c.impersonatedFact(everyAccountName, a.namespace), ons, a)
		return
	}
	for _, ns := range slices.Sorted(maps.Keys(c.accountNames)) {
		if (a.namespace == "" || a.namespace == ns) && slices.Contains(c.accountNames[ns], a.name) {
			c.limitedTo(c.asImpersonated(key{kind: isServiceAccount, namespace: ns, name: a.name}), ons, a)
		}
	}
}

// limitedGroups gives groups. They are impersonated together with some user.
func (c *combiner) limitedGroups(ons []held) {
	for _, user := range c.someUser() {
		for _, a := range c.have(impersonateGroupInfo) {
			switch a.name {
			case masters:
			case "", everyName: // four groups in one request are checked as "*" first
				c.limitedTo(c.impersonatedFact(everyGroup, ""), ons, user, a)
			default:
				c.limitedTo(c.asImpersonated(key{kind: isGroup, name: a.name}), ons, user, a)
			}
		}
	}
}

// someUser lists the rights to impersonate a user that is neither a node nor a service account: one
// that the identity has, or else those that it can be given.
func (c *combiner) someUser() []held {
	var users []held
	for _, u := range c.have(impersonateUserInfo) {
		switch {
		case u.name != "" && !plainUser(u.name):
		case u.through == none:
			return []held{u}
		default:
			users = append(users, u)
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
	b.identities = append(b.identities, &identity{vertex: v, kind: isAssociated, subjects: b.subjectsOfIdentity(k)})
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
	text += " to " + kind.verbs[0] + " " + kind.resource
	if kind.subresource != "" {
		text += "/" + kind.subresource
	}
	if k.name != "" && k.name != unnamed {
		text += " " + k.name
	}
	if kind.namespaced {
		text += scopeText(k.namespace)
	}
	return text
}
