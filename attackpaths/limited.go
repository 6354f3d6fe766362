package attackpaths

import (
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// limited is the vertex of an identity, or of each identity that a fact leads to, as far as a
// request is covered; false if it can do nothing.
func (b *builder) limited(m mode, of vertex, l limit) (vertex, bool) {
	if of == none {
		return none, false
	}
	k := key{kind: isLimited, variant: uint8(l.request), mode: m, namespace: l.namespace, name: l.name, of: of}
	if v, ok := b.index[k]; ok {
		return v, true
	}
	if b.empty[k] || !m.suits(b.keys[of]) {
		return none, false
	}
	edges := b.limitedEdges(m, of, l)
	rights := b.limitedRights(of, l)
	if len(edges) == 0 && len(rights) == 0 {
		b.empty[k] = true
		return none, false
	}
	v := b.vertex(k)
	b.out[v] = edges
	if len(rights) > 0 {
		b.identities = append(b.identities, &identity{vertex: v, subjects: b.targetOf(of).subjects, rights: rights, alone: true})
	}
	return v, true
}

// limitedEdges leads to what a limited identity can do with one right.
func (b *builder) limitedEdges(m mode, of vertex, l limit) []edge {
	var edges []edge
	k := b.keys[of]
	if k.kind == isFact {
		for _, e := range b.out[of] {
			if v, ok := b.limited(m, e.to, l); ok {
				edges = append(edges, edge{to: v, arg: -1})
			}
		}
		return edges
	}
	if l.request == whole {
		return []edge{{to: of, arg: -1}}
	}
	r := requests[l.request].right
	for _, g := range b.targetOf(of).requests {
		if both, ok := g.and(l); ok {
			edges = append(edges, edge{to: b.rightVertex(r, both.namespace, both.rightName()), arg: g.binding})
		}
	}
	if k.kind == isNodeUser {
		edges = append(edges, b.limitedNodeEdges(k.name[len(nodeidentity.UserPrefix):], l)...)
	}
	return edges
}

// limitedNodeEdges leads to what the Node authorizer allows.
func (b *builder) limitedNodeEdges(node string, l limit) []edge {
	var edges []edge
	switch r := requests[l.request].right; r {
	case readSecrets:
		for _, o := range b.objects.secretsOn(node) {
			if l.covers(o.Namespace, o.Name) {
				to := b.vertex(key{kind: isSecret, namespace: o.Namespace, name: o.Name})
				edges = append(edges, edge{to: to, arg: -1, row: rowOf(SecretOnNode)})
			}
		}
	case createToken:
		for _, i := range b.podsOn[node] {
			if p := b.pods[i]; b.hasTokens(p) && b.mints(p) && l.covers(p.Namespace, p.ServiceAccount) {
				to := b.tokenOfPod(p, node)
				if to == none {
					continue
				}
				guards := b.condition(b.guardsOf(createToken, p.Namespace))
				edges = append(edges, edge{to: to, arg: i, row: rowOf(TokenOfPodOnNode), dependsOn: guards})
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
func (b *builder) limitedRights(of vertex, l limit) map[ownKey]bool {
	r := requests[l.request].right
	if l.request == whole || r < firstOwn || b.keys[of].kind == isFact {
		return nil
	}
	rights := map[ownKey]bool{}
	t := b.targetOf(of)
	for _, g := range t.requests {
		if both, ok := g.and(l); ok {
			rights[ownKey{r, both.namespace, both.rightName()}] = true
		}
	}
	if len(rights) == 0 || len(t.checked) == 0 {
		return nil
	}
	for _, k := range t.checked {
		rights[k] = true
	}
	return rights
}

// constrained adds the identities that a requester may impersonate for some requests.
func (c *combiner) constrained() {
	if ons := c.haveOn(arbitraryNode); len(ons) > 0 {
		for _, a := range c.have(impersonateArbitraryNodes) {
			if a.name == "" {
				c.limitedTo(arbitraryNode, c.impersonatedFact(everyNodeUser, ""), ons, a)
			} else if c.has(key{kind: isNode, name: a.name}) {
				c.limitedTo(arbitraryNode, c.asImpersonated(key{kind: isNodeUser, name: nodeidentity.UserPrefix + a.name}), ons, a)
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
				c.limitedTo(userInfoMode, c.impersonatedFact(everyUser, ""), ons, a)
			} else if c.users[a.name] {
				c.limitedTo(userInfoMode, c.asImpersonated(userKey(a.name)), ons, a)
			}
		}
		c.limitedGroups(ons)
	}
}

// limitedAccounts gives service accounts, also those that no object stands for.
func (c *combiner) limitedAccounts(ons []held, a held) {
	if a.name == "" {
		c.limitedTo(serviceAccountMode, c.impersonatedFact(everyAccountName, a.namespace), ons, a)
		return
	}
	for _, ns := range slices.Sorted(maps.Keys(c.accountNames)) {
		if (a.namespace == "" || a.namespace == ns) && slices.Contains(c.accountNames[ns], a.name) {
			c.limitedTo(serviceAccountMode, c.asImpersonated(key{kind: isServiceAccount, namespace: ns, name: a.name}), ons, a)
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
				c.limitedTo(userInfoMode, c.impersonatedFact(everyGroup, ""), ons, user, a)
			default:
				c.limitedTo(userInfoMode, c.asImpersonated(key{kind: isGroup, name: a.name}), ons, user, a)
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
			c.limitedTo(associatedNode, c.asImpersonated(c.keys[c.keys[c.who.vertex].of]), ons, a)
		}
	}
}

// limitedTo adds an identity for each kind of request that is covered.
func (c *combiner) limitedTo(m mode, of vertex, ons []held, rights ...held) {
	for _, o := range ons {
		if v, ok := c.limited(m, of, o.on.limit); ok {
			c.combine(Impersonate, v, "", append(slices.Clone(rights), o))
		}
	}
}

// haveOn lists the rights `impersonate-on` of a mode, those of the identity first.
func (c *combiner) haveOn(m mode) []held {
	var all []held
	if !c.modes[m] {
		return nil
	}
	for _, o := range c.who.on {
		if o.mode == m {
			all = append(all, held{on: o, through: none})
		}
	}
	for o, v := range c.impersonator.own {
		if o.mode == m && !slices.Contains(c.who.on, o) {
			all = append(all, held{on: o, through: v})
		}
	}
	slices.SortFunc(all, func(a, b held) int { return a.on.compare(b.on) })
	return all
}

// associatedVertex is a service account with a token that is associated with a node, or with each.
func (b *builder) associatedVertex(namespace, name string, node vertex) vertex {
	return b.vertex(key{kind: isAssociated, namespace: namespace, name: name, of: node})
}

// associates reports whether it matters with which node a token is associated.
func (b *builder) associates() bool { return b.modes[associatedNode] }

// associatedWith adds a step to an account with a token that is associated with a node.
func (b *builder) associatedWith(code Code, from vertex, namespace, name, node string, arg int32, dependsOn string) {
	if b.associates() && b.scopeOf(namespace, name) == nil {
		user := b.vertex(key{kind: isNodeUser, name: nodeidentity.UserPrefix + node})
		b.step(code, from, b.associatedVertex(namespace, name, user), arg, dependsOn)
	}
}

// associatedWithAny adds a step to an account with a token that is associated with any node.
func (b *builder) associatedWithAny(code Code, from vertex, namespace, name, dependsOn string) {
	if a := b.scopeOf(namespace, name); a != nil {
		b.step(code, from, b.tokenVertex(a, b.fact(everyNodeUser, ""), 0), -1, dependsOn)
	} else if b.associates() {
		b.step(code, from, b.associatedVertex(namespace, name, b.fact(everyNodeUser, "")), -1, dependsOn)
	}
}

// expandAssociated gives the account.
func (b *builder) expandAssociated(v vertex, k key) {
	if a := b.scopeOf(k.namespace, k.name); a != nil {
		b.expandToken(v, k, a)
		return
	}
	b.implies(v, b.accountVertex(k.namespace, k.name))
	b.associations = append(b.associations, v)
}

// mayBeAssociated adds the nodes of the pods that mount a token of an account: the token may be
// one of these.
func (b *builder) mayBeAssociated(v vertex, k key) {
	if !b.associates() {
		return
	}
	for _, i := range b.podsIn[k.namespace] {
		if p := b.pods[i]; p.ServiceAccount == k.name && p.Node != "" && hasToken(p) {
			user := b.vertex(key{kind: isNodeUser, name: nodeidentity.UserPrefix + p.Node})
			to := b.associatedVertex(k.namespace, k.name, user)
			b.out[v] = append(b.out[v], edge{to: to, arg: -1, dependsOn: b.condition(dependsOnAssociation)})
		}
	}
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
	if k.kind != isLimited || request(k.variant) == whole {
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
	text := "may impersonate " + name + " in the mode " + k.mode.String()
	if request(k.variant) == whole {
		return text + " for every request"
	}
	row := requests[k.variant]
	kind := &requestKinds[row.right]
	text += " to " + row.verb + " " + kind.resource
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
