package attackpaths

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// identity is one that makes requests, with the rights that it has by bindings and that
// count together.
type identity struct {
	vertex   vertex
	kind     vertexKind // set for isAssociated
	subjects []vertex
	rights   map[grant]origin
	// alone is true for an identity that is impersonated for some requests only: the rights that
	// the attacker can give to those that it holds do not count for it.
	alone bool
	// impersonated is true for an identity of which no credential is held: it cannot impersonate.
	impersonated bool
	// scoped is set for a token of a service account in NodeScopes: its rights are what these let pass.
	scoped *scopedAccount
}

// origin is the binding that gives a right, -1 if none does, and what else decides whether it is had.
type origin struct {
	binding   int32
	dependsOn string
}

func (b *builder) addIdentity(v vertex, k key, subjects []vertex) {
	if len(subjects) > 0 || k.kind == isNodeUser {
		b.identities = append(b.identities, &identity{
			vertex: v, subjects: subjects, rights: b.rightsOfSubjects(subjects), impersonated: k.variant == impersonated,
		})
	}
}

// combineRights adds the steps that need two rights of one identity. The roles that such
// steps give may lead to more of them, until nothing is new.
func (b *builder) combineRights() {
	seen := map[string]bool{}
	for {
		vertices, joins := len(b.keys), len(seen)
		audiences := slices.ContainsFunc(b.owned, func(v vertex) bool { // which the attacker gives to nodes
			return b.kinds[b.keys[v].variant].resource == anyAudience
		})
		for _, x := range b.identities {
			some := x.kind == isAssociated || len(x.rights) > 0 || x.scoped != nil && len(x.scoped.held) > 0
			if some || audiences && b.keys[x.vertex].kind == isNodeUser {
				(&combiner{b, x, seen}).run()
			}
		}
		(&combiner{b, &identity{vertex: none}, seen}).run()
		b.drain() // which may add identities
		if len(b.keys) == vertices && len(seen) == joins {
			return
		}
	}
}

// eachRole calls a function for each role that is bound to subjects.
func (g *Graph) eachRole(subjects []vertex, do func(role key, binding int32)) {
	for _, s := range subjects {
		for _, e := range g.edges.Out[s] {
			do(g.keys[e.To], e.Arg)
		}
	}
}

// rightsOfSubjects collects the rights that count together and that roles bound to the subjects grant.
func (b *builder) rightsOfSubjects(subjects []vertex) map[grant]origin {
	rights := map[grant]origin{}
	b.eachRole(subjects, func(role key, binding int32) {
		everything := b.rightsOfRole(role.role).everything
		if everything && role.namespace == "" {
			return // it leads to cluster-admin, which owns the rest
		}
		for _, g := range b.grantsOf(role) {
			kind := &b.kinds[g.right]
			_, known := rights[g]
			switch {
			case known || !g.right.countsTogether() || role.variant == restricted && kind.refused:
			case everything && (kind.mode != 0 || kind.on != 0 && role.variant != restricted):
				// Who has everything in a namespace may impersonate without constraint, but for nodes.
			default:
				rights[g] = origin{binding: binding}
			}
		}
	})
	return rights
}

// combiner combines the rights of one identity with those that the attacker can give to it.
// Without an identity it combines only the latter.
type combiner struct {
	*builder
	who  *identity
	seen map[string]bool
}

// have lists the rights of the given kinds.
func (c *combiner) have(kinds ...right) []held {
	all := c.haveAny(func(r right) bool { return slices.Contains(kinds, r) })
	for _, r := range kinds {
		all = append(all, c.byName(r)...)
	}
	slices.SortFunc(all, held.compare)
	return all
}

// haveAny lists rights of the identity, and those that it can be given.
func (c *combiner) haveAny(is func(right) bool) []held {
	var all []held
	for k := range c.who.rights {
		if is(k.right) && !c.neverCreates(k.right, k.namespace) {
			all = append(all, held{grant: k, through: none})
		}
	}
	for _, v := range c.owned {
		k := c.keys[v]
		g := grant{right(k.variant), limit{k.namespace, k.name}}
		_, has := c.who.rights[g]
		if !has && !c.who.alone && is(g.right) && !c.neverCreates(g.right, g.namespace) {
			all = append(all, held{grant: g, through: v})
		}
	}
	slices.SortFunc(all, held.compare)
	return all
}

// held is a right, and the vertex through which the identity gets it; none if it has it.
type held struct {
	grant
	// parts are the rights of which it is made, for one to create an object by its name.
	parts   []grant
	through vertex
}

func (h held) compare(o held) int {
	return cmp.Or(h.grant.compare(o.grant), cmp.Compare(h.through, o.through))
}

// pair adds a step that needs two rights of the identity, and other vertices.
func (c *combiner) pair(code Code, to vertex, dependsOn string, a, b held, others ...vertex) {
	c.combine(code, to, dependsOn, []held{a, b}, others...)
}

// combine adds a step that needs several rights of the identity, and other vertices.
func (c *combiner) combine(code Code, to vertex, dependsOn string, rights []held, others ...vertex) {
	from := append([]vertex{c.who.vertex}, others...)
	given := true // to each identity
	for _, h := range rights {
		from = append(from, h.through)
		given = given && h.through != none
	}
	if given != (c.who.vertex == none) && c.who.kind != isAssociated {
		return // the same step is there for no identity
	}
	c.add(code, to, dependsOn, rights, from)
}

// add adds a step of the identity.
func (c *combiner) add(code Code, to vertex, dependsOn string, rights []held, from []vertex) {
	switch {
	case to == none:
		return
	case c.who.vertex == none && c.enforced > 0:
		from = append(from, c.fact(holdsFree, ""))
	case c.who.scoped != nil && slices.ContainsFunc(rights, func(h held) bool { return h.through != none }):
		dependsOn = allOf(dependsOn, dependsOnScopes)
	}
	for _, h := range rights {
		if h.right == createSigningRequests && len(h.parts) > 0 && h.name != "" {
			dependsOn = allOf(dependsOn, dependsOnRequestName)
		}
		if h.through != none && len(h.parts) == 0 {
			continue
		}
		if len(h.parts) > 0 && c.who.scoped != nil {
			dependsOn = allOf(dependsOn, dependsOnScopes)
		}
		for _, k := range h.keys() {
			dependsOn = allOf(dependsOn, c.who.rights[k].dependsOn)
		}
	}
	id := binary.AppendVarint(nil, int64(rowOf(code)))
	id = binary.AppendVarint(id, int64(c.condition(dependsOn)))
	for _, v := range append([]vertex{to}, from...) {
		id = binary.AppendVarint(id, int64(v))
	}
	if c.seen[string(id)] {
		return
	}
	c.seen[string(id)] = true
	c.togetherBy(code, to, c.bindingOf(rights), dependsOn, from...)
}

// bindingOf finds the binding that gives the identity one of its rights, the last first; -1 if none
// does.
func (c *combiner) bindingOf(rights []held) int32 {
	for _, h := range slices.Backward(rights) {
		if from, ok := c.who.rights[h.keys()[0]]; ok && h.through == none && table[h.right].on == 0 {
			return from.binding
		}
	}
	return -1
}

func (c *combiner) run() {
	if c.who.kind == isAssociated {
		c.associated()
		return
	}
	c.createByName()
	c.bind()
	c.escalate()
	c.passOnRules()
	c.certificates()
	c.audiences()
	if !c.who.impersonated {
		c.impersonate()
		c.constrained()
	}
}

// A certificate or an impersonation may carry a user and any groups at once, so that rights of both
// count together for one requester. It carries one user only.

// everyGroupSubject lists the groups that an identity may be in: each that bindings name but
// system:masters.
func (b *builder) everyGroupSubject() []vertex {
	if b.groups == nil {
		groups := slices.DeleteFunc(b.subjectsOf("Group"), func(g string) bool { return g == masters })
		b.groups = b.subjects("", anybody, groups...)
		b.groupsCombine = len(b.rightsOfSubjects(b.groups)) > 0
	}
	return b.groups
}

// expandEveryIdentity adds the users whose own rights may count together with the rights of groups.
func (b *builder) expandEveryIdentity(v vertex, k key) {
	accounts, with := k.name == everyIdentity, key{kind: isFact, name: userWithGroups}
	b.implies(v, b.memberOf(k, with))
	for _, user := range b.subjectsOf("User") {
		if _, _, isAccount := accountOfUser(user); (accounts || !isAccount) && b.countsWithGroups(user) {
			with.namespace = user
			b.implies(v, b.memberOf(k, with))
		}
	}
}

// countsWithGroups reports whether a user that is no node has a right that may count together with one
// of a group.
func (b *builder) countsWithGroups(user string) bool {
	return !strings.HasPrefix(user, nodeUserPrefix) && len(b.everyGroupSubject()) > 0 && b.groupsCombine &&
		!b.denied(user) && len(b.rightsOfSubjects(b.subjects(user, anybody))) > 0
}

// The signers of client certificates.
const (
	clientSigner  = "kubernetes.io/kube-apiserver-client"
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
)

// certificates: a request, and its approval or signature. The API server answers a second, empty patch
// of the approval with the request and its certificate; who signs has the certificate. A request that
// is approved by itself has to be read.
func (c *combiner) certificates() {
	for _, status := range c.have(updateApprovals) {
		for _, signer := range c.have(approveSigners) {
			c.certificate(ApproveCertificate, status, signer, c.guardsOf(updateApprovals, ""))
		}
	}
	for _, status := range c.have(updateSigningStatus, patchSigningStatus) {
		for _, signer := range c.have(signSigners) {
			c.certificate(SignCertificate, status, signer, dependsOnCA, c.guardsOf(status.right, ""))
		}
	}
	names := []string{""} // of requests that can be read; the attacker chooses the name of its own
	for _, k := range c.requestReads {
		names = append(names, k.name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, auto := range c.have(autoApprove) {
		for _, request := range c.have(createSigningRequests) {
			for _, name := range names {
				if request.name != "" && name != "" && name != request.name {
					continue
				}
				read := c.rightVertex(readSigningRequests, "", name)
				c.pair(ApproveCertificate, c.fact(everyNodeUser, ""), c.guardsOf(createSigningRequests, ""), auto, request, read)
			}
		}
	}
}

func (c *combiner) certificate(code Code, status, signer held, conditions ...string) {
	dependsOn := allOf(append(conditions, c.guardsOf(createSigningRequests, ""))...)
	if signs(signer, clientSigner) {
		for _, to := range [...]string{everyUser, everyAccountName, everyGroup, everyNodeUser, everyIdentity} {
			c.pair(code, c.fact(to, ""), dependsOn, status, signer, c.fact(clientRequests, ""))
		}
	}
	if signs(signer, kubeletSigner) {
		c.pair(code, c.fact(everyNodeUser, ""), dependsOn, status, signer, c.rightVertex(createSigningRequests, "", ""))
	}
}

// signs reports whether a right is one for a signer: by its name, or by its domain.
func signs(h held, signer string) bool {
	return h.name == "" || h.name == signer || h.name == "kubernetes.io/*"
}
