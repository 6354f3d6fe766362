package attackpaths

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
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
	b.edges.Out[v] = edges
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
		for _, e := range b.edges.Out[of] {
			if v := b.limited(e.To, on); v != none {
				edges = append(edges, edge{To: v, Arg: -1})
			}
		}
		return edges, nil
	case kind.whole:
		return []edge{{To: of, Arg: -1}}, nil
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
				edges = append(edges, edge{To: b.rightVertex(p.right, both.namespace, both.rightName()), Arg: p.binding})
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
		for _, e := range b.edges.Out[node] {
			switch to := b.keys[e.To]; {
			case r == readSecrets && e.Row == rowOf(SecretOnNode) && l.covers(to.namespace, to.name),
				r == createToken && e.Row == rowOf(TokenOfPodOnNode) && l.covers(b.pods[e.Arg].Namespace, b.pods[e.Arg].ServiceAccount):
				edges = append(edges, e)
			}
		}
	case createSigningRequests:
		edges = append(edges, edge{To: b.fact(clientRequests, ""), Arg: -1})
	case readSigningRequests:
		edges = append(edges, edge{To: b.rightVertex(r, "", l.rightName()), Arg: -1})
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
		name = nodeidentity.ServiceAccountUser(of.namespace, of.name)
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

// With constrained impersonation a requester may act as another identity for some requests only.
// It needs `impersonate:MODE` on the identity and, for each request, `impersonate-on:MODE:VERB` on
// what the request is about. The request is then authorized for the impersonated identity.
// Impersonated identities cannot impersonate.
//
// A limited identity stands for an identity and one of the rights `impersonate-on:MODE:VERB`: it has
// the rights of the identity that this one covers. What the API server checks beside the request,
// such as bind, it checks of the impersonated identity alone.
//
// Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation, KEP-5284.

// mode is a mode of constrained impersonation, and zero anything else.
type mode uint8

const (
	associatedNode mode = 1 + iota
	arbitraryNode
	serviceAccountMode
	userInfoMode
	modeCount
)

func (m mode) String() string {
	return [...]string{"", "associated-node", "arbitrary-node", "serviceaccount", "user-info"}[m]
}

// suits reports whether an identity can be impersonated in a mode.
func (m mode) suits(k key) bool {
	switch k.kind {
	case isNodeUser:
		return m == associatedNode || m == arbitraryNode
	case isServiceAccount:
		return m == serviceAccountMode
	case isUser:
		return m == userInfoMode && plainUser(k.name)
	case isGroup:
		return m == userInfoMode && k.name != masters
	case isFact:
		return true // each of its members is asked about
	}
	return false
}

// plainUser reports whether a user is neither a node nor a service account.
func plainUser(name string) bool {
	_, _, isAccount := accountOfUser(name)
	return !isAccount && !strings.HasPrefix(name, nodeidentity.UserPrefix)
}

// everyName are both in a rule and in the check of many groups at once.
const everyName = "*"

// impersonator combines constrained impersonation for a builder.
type impersonator struct {
	// modes are those that a role grants.
	modes [modeCount]bool
	// targets are the requests of identities that are impersonated.
	targets map[vertex][]part
	// empty are limited identities that can do nothing.
	empty map[key]bool
}

// startImpersonation finds the modes that roles grant, and adds what many are impersonated through.
func (b *builder) startImpersonation() {
	b.impersonator = impersonator{targets: map[vertex][]part{}, empty: map[key]bool{}}
	if !b.cluster.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		return
	}
	for _, role := range b.roles {
		if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return grantsEverything(&rule) }) {
			continue // it contains the right to impersonate without constraint
		}
		for r := impersonateAssociatedNode; r <= impersonateGroupInfo; r++ {
			for i := range role.Rules {
				if k := &requestKinds[r]; len(k.namesBy(&role.Rules[i])) > 0 {
					b.modes[k.mode] = true
				}
			}
		}
	}
	if !b.constrains() {
		return
	}
	for _, name := range [...]string{everyUser, everyGroup, everyNodeUser, everyAccountName} {
		b.impersonatedFact(name, "")
	}
}

// constrains reports whether a role grants some mode.
func (b *builder) constrains() bool { return b.modes != [modeCount]bool{} }

// requestsOf lists what an identity may do by the bindings of its subjects.
func (b *builder) requestsOf(v vertex) []part {
	all, ok := b.targets[v]
	if ok {
		return all
	}
	seen := map[part]bool{}
	b.eachPart(b.subjectsOfIdentity(b.keys[v]), func(p part) {
		id := p
		if id.binding = 0; !seen[id] {
			seen[id] = true
			all = append(all, p)
		}
	})
	b.targets[v] = all
	return all
}

// subjectsOfIdentity are the subjects of an identity.
func (b *builder) subjectsOfIdentity(k key) []vertex {
	switch k.kind {
	case isNodeUser:
		return b.subjects(k.name, restricted, nodeidentity.Group, authenticated)
	case isServiceAccount, isAssociated:
		return b.subjects(nodeidentity.ServiceAccountUser(k.namespace, k.name), anybody,
			allServiceAccounts, allServiceAccounts+":"+k.namespace, authenticated)
	case isGroup:
		return b.subjects("", anybody, k.name, authenticated)
	case isFact: // a user with every group
		return append(b.subjects(k.namespace, anybody), b.everyGroupSubject()...)
	}
	return b.subjects(k.name, anybody, authenticated)
}
