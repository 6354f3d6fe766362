package attackpaths

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// NodeScopes that are enforced limit what a service account may do with a token of one node. For each
// account in such a scope there are these vertices:
//
//   - a token of the account on a node (isAssociated), with the rights that need this node,
//   - what each of these tokens may do, whatever its node (isScoped),
//   - the account with a credential that has no node (isServiceAccount), if all scopes let these pass:
//     they have everything that RBAC grants,
//   - the account as a start, and the account as a holding (variants of isServiceAccount).
//
// What a scope lets through is the part that its rules and RBAC's have in common, as vertices of rights.
// A role that the attacker binds counts for identities that no scope limits, and possibly for others.
// Rules that an account holds by RBAC may be bound to others, because the API server compares rules with
// rules then, and asks no authorizer.

// Variants of service accounts that scopes limit.
const (
	// scopedStart is some token of the account.
	scopedStart = impersonatedNode + 1 + iota
	// scopedHolding is that a token of the account is held. It leads nowhere.
	scopedHolding
)

// Variants of roles.
const (
	// ownFree is one that the attacker can bind to an identity that no scope limits.
	ownFree = scopedHolding + 1 + iota
	// heldInScopes is one that is bound to an account in scopes. The account is the name; the role gives nothing
	// by itself, and rules that are added to it count as far as the scopes let them pass.
	heldInScopes
)

// Facts about scopes.
const (
	// holdsFree is that an identity is held that no scope limits.
	holdsFree = "an identity that no NodeScope limits"
	// nodeNamed is a node of some name, which need not exist; the namespace is the name, empty for any.
	nodeNamed = "a node named"
)

// What else decides.
const (
	dependsOnScopes = "whether the NodeScopes of the account let through what a role that is bound to it allows, " +
		"or the API server answers anonymous requests"
	dependsOnNodeName = "whether an object with the name of the node has the effect"
	dependsOnPodName  = "whether a pod on the node has the name of the object"
	dependsOnSelector = "which objects the field selector selects"
	dependsOnAsNode   = "whether the Node authorizer and NodeRestriction allow it to the node"
)

// scopedAccount is a service account in NodeScopes that are enforced.
type scopedAccount struct {
	namespace, name string
	// scopes are the names of the scopes, the oldest first, and rules what they let pass; nil once parts are made of them.
	scopes []string
	rules  []scopeRules
	// unbound is true if all scopes let pass what a credential without a node may do.
	unbound bool
	// nothing is true if a scope lets nothing pass with a token of a node.
	nothing bool
	// whole is true if all scopes let everything pass with a token of a node.
	whole bool
	// perNode are the parts that depend on the node, and others the rest.
	perNode, others []part
	// associates is true if all scopes let the account impersonate its node.
	associates bool
	// held are the roles that bindings give to the account.
	held     []heldRole
	subjects []vertex
}

// heldRole is a role that a binding gives, in a namespace or everywhere.
type heldRole struct {
	role, binding int32
	namespace     string
}

// Notes are what the graph takes for granted and the state does not show, in plain sentences.
func (g *Graph) Notes() []string {
	if g.enforced == 0 {
		return nil
	}
	scopes := "1 NodeScope counts"
	if g.enforced > 1 {
		scopes = fmt.Sprintf("%d NodeScopes count", g.enforced)
	}
	return []string{scopes + " as enforced: the state does not show whether kube-apiserver asks about NodeScopes"}
}

// collectScopes finds out whether scopes are enforced.
func (b *builder) collectScopes() {
	b.scoped = map[inventory.Name]*scopedAccount{}
	if b.cluster.NodeScopes == nil {
		return
	}
	for _, s := range b.cluster.NodeScopes.Scopes() {
		if s.Mode() == v1alpha1.Enforce {
			b.enforced++
		}
	}
}

// scopeOf is what enforced scopes say about an account; nil if none is about it.
func (b *builder) scopeOf(namespace, name string) *scopedAccount {
	if b.enforced == 0 {
		return nil
	}
	account := inventory.Name{Namespace: namespace, Name: name}
	a, ok := b.scoped[account]
	if !ok {
		a = b.readScopes(namespace, name)
		b.scoped[account] = a
	}
	return a
}

// denied reports whether scopes refuse everything to a user without a node.
func (b *builder) denied(user string) bool {
	namespace, name, ok := accountOfUser(user)
	if !ok {
		return false
	}
	a := b.scopeOf(namespace, name)
	return a != nil && !a.unbound
}

func (b *builder) readScopes(namespace, name string) *scopedAccount {
	user := nodeidentity.ServiceAccountUser(namespace, name)
	a := &scopedAccount{namespace: namespace, name: name, unbound: true, associates: true, whole: true}
	onNode, without := b.cluster.NodeScopes.Passing(user, "n"), b.cluster.NodeScopes.Passing(user, "")
	for _, s := range b.cluster.NodeScopes.Of(user) {
		if s.Mode() != v1alpha1.Enforce {
			continue
		}
		r := newScopeRules(s.Name(), onNode)
		a.scopes, a.rules = append(a.scopes, s.Name()), append(a.rules, r)
		a.unbound = a.unbound && slices.ContainsFunc(without, func(p nodescope.Passing) bool { return p.Scope == s.Name() })
		a.nothing = a.nothing || len(r.rules) == 0 && !r.asNode && !r.otherwise
		a.associates, a.whole = a.associates && (r.asNode || r.otherwise), a.whole && r.letsAll()
	}
	a.whole = a.whole && !a.nothing
	if len(a.scopes) == 0 {
		return nil
	}
	return a
}

// title names the scopes of an account.
func (a *scopedAccount) title() string {
	if len(a.scopes) == 1 {
		return "NodeScope " + a.scopes[0]
	}
	return "NodeScopes " + strings.Join(a.scopes, ", ")
}

// startVertex is an account as a start, or as what a custom technique gives.
func (b *builder) startVertex(namespace, name string) vertex {
	k := key{kind: isServiceAccount, namespace: namespace, name: name}
	if b.scopeOf(namespace, name) != nil {
		k.variant = scopedStart
	}
	return b.vertex(k)
}

// tokenVertex is a token of an account on a node; none if it may do nothing. The node is the vertex of
// its credential, of each node's, or of a name.
func (b *builder) tokenVertex(namespace, name string, node vertex, variant uint16) vertex {
	if a := b.scopeOf(namespace, name); a != nil && a.nothing {
		return none
	}
	return b.vertex(key{kind: isAssociated, variant: variant, namespace: namespace, name: name, of: node})
}

// nodeMatters reports whether it matters on which node a token of an account is.
func (b *builder) nodeMatters(namespace, name string) bool {
	return b.associates() || b.scopeOf(namespace, name) != nil
}

// anyToken is an account with a token that may be bound to any node.
func (b *builder) anyToken(namespace, name string) vertex {
	if b.nodeMatters(namespace, name) {
		return b.tokenVertex(namespace, name, b.fact(everyNodeUser, ""), 0)
	}
	return b.accountVertex(namespace, name)
}

// mayBeOnNodes adds the nodes of the pods that mount a token of an account: one of which the node is not known may be
// one of these.
func (b *builder) mayBeOnNodes(v vertex, k key) {
	for _, i := range b.podsIn[k.namespace] {
		if p := b.pods[i]; p.ServiceAccount == k.name && p.Node != "" && hasToken(p) {
			b.impliesIf(v, b.tokenVertex(k.namespace, k.name, b.nodeUserVertex(p.Node), 0), dependsOnAssociation)
		}
	}
}

// holdsAccount notes that an account in scopes is held.
func (b *builder) holdsAccount(v vertex, a *scopedAccount) {
	b.implies(v, b.vertex(key{kind: isServiceAccount, variant: scopedHolding, namespace: a.namespace, name: a.name}))
}

// holds notes that an identity is held that no scope limits, and that is no node.
func (b *builder) holds(v vertex) {
	b.implies(v, b.fact(holdsIdentity, ""))
	b.holdsFreeIdentity(v)
}

func (b *builder) holdsFreeIdentity(v vertex) {
	if b.enforced > 0 {
		b.implies(v, b.fact(holdsFree, ""))
	}
}

// expandScopedStart gives what each token of an account has, and what its tokens on the nodes of pods
// may have.
func (b *builder) expandScopedStart(v vertex, k key) {
	a := b.scopeOf(k.namespace, k.name)
	b.partsOf(a)
	b.holdsAccount(v, a)
	if a.unbound {
		b.implies(v, b.accountVertex(k.namespace, k.name))
	}
	if a.nothing {
		b.anonymously(v)
		return
	}
	b.implies(v, b.scopedVertex(a, 0))
	if len(a.perNode) > 0 || b.associates() {
		b.mayBeOnNodes(v, k)
	}
}

// expandToken gives what a token on a node may do.
func (b *builder) expandToken(v vertex, k key, a *scopedAccount) {
	b.partsOf(a)
	b.holdsAccount(v, a)
	if k.variant != impersonated && a.associates { // it may impersonate the node
		x := &identity{vertex: v, kind: isAssociated, subjects: a.subjects, rights: map[grant]origin{}, scoped: a}
		for i := range a.others {
			if p := &a.others[i]; b.kinds[p.right].associates() {
				x.note(p, p.limit, "")
			}
		}
		b.identities = append(b.identities, x)
	}
	b.implies(v, b.scopedVertex(a, k.variant))
	if len(a.perNode) == 0 {
		return
	}
	switch node := b.keys[k.of]; {
	case node.kind == isNodeUser:
		name := node.name[len(nodeUserPrefix):]
		b.givesParts(v, k, a, a.perNode, place{node: name})
		b.ownCertificate(v, a, name)
	case node.name == everyNodeUser:
		for _, n := range b.nodes {
			b.implies(v, b.tokenVertex(a.namespace, a.name, b.nodeUserVertex(n.Name), k.variant))
		}
	default:
		if node.namespace == "" {
			b.implies(v, b.tokenVertex(a.namespace, a.name, b.fact(everyNodeUser, ""), k.variant))
		}
		b.givesParts(v, k, a, a.perNode, place{chosen: true, node: node.namespace})
	}
}

// scopedVertex is what each token of an account may do, whatever its node.
func (b *builder) scopedVertex(a *scopedAccount, variant uint16) vertex {
	return b.vertex(key{kind: isScoped, variant: variant, namespace: a.namespace, name: a.name})
}

func (b *builder) expandScoped(v vertex, k key) {
	a := b.scopeOf(k.namespace, k.name)
	b.partsOf(a)
	if k.variant != impersonated {
		b.anonymously(v)
		b.impliesIf(v, b.fact(holdsFree, ""), dependsOnScopes)
		b.impliesIf(v, b.fact(holdsIdentity, ""), dependsOnScopes)
	}
	// What is bound to an account in scopes may pass them, and cluster-admin owns the rest.
	owns := false
	for _, h := range a.held {
		of := key{kind: isRole, variant: heldInScopes, namespace: h.namespace, name: a.user(), role: h.role}
		b.impliesIf(v, b.vertex(of), dependsOnScopes)
		if a.whole && h.namespace == "" && b.rightsOfRole(h.role).everything {
			b.step(Masters, v, b.vertex(key{kind: isClusterAdmin}), h.binding, "")
			owns = true
		}
	}
	if !owns {
		b.givesParts(v, k, a, a.others, place{})
	}
}

func (a *scopedAccount) user() string { return nodeidentity.ServiceAccountUser(a.namespace, a.name) }

// scopeText names the scopes that let a step pass, and the node that they limit it to; empty if no scope
// is about it.
func (s *solver) scopeText(how via, to vertex) string {
	if s.enforced == 0 {
		return ""
	}
	for _, v := range s.edges.Parts(how) {
		if text := s.scopeTextOf(v, passing{v, to}); text != "" {
			return text
		}
	}
	return ""
}

// scopeTextOf follows a derivation back from a right to the token that has it.
func (s *solver) scopeTextOf(v vertex, by passing) string {
	for v != none {
		switch k := s.keys[v]; k.kind {
		case isScoped, isAssociated:
			a := s.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}]
			if a == nil {
				return ""
			}
			text := a.title()
			if rules := s.passedBy[by].rules; rules != "" {
				text = rules
			}
			if node := s.keys[k.of]; k.kind == isAssociated && node.kind == isNodeUser {
				return text + " lets it pass for node " + node.name[len(nodeUserPrefix):]
			}
			return text + " lets it pass"
		case isRight, isCustom:
		default:
			return ""
		}
		if s.Via(v).Join >= 0 {
			return ""
		}
		from := s.Via(v).From
		v, by = from, passing{from, v}
	}
	return ""
}

// scopedSubjects are the subjects of an account in scopes that a binding names.
func (g *Graph) scopedSubjects(k key, binding int32) []vertex {
	var found []vertex
	for _, v := range g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}].subjects {
		if slices.ContainsFunc(g.edges.Out[v], func(e edge) bool { return e.Arg == binding }) {
			found = append(found, v)
		}
	}
	return found
}

// isScopedAccount reports whether a vertex is an account that enforced scopes are about.
func (g *Graph) isScopedAccount(k key) bool {
	return (k.kind == isScoped || k.kind == isAssociated || k.kind == isServiceAccount) &&
		g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}] != nil
}
