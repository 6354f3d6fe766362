package attackpaths

import (
	"fmt"
	"slices"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The graph of edges. A vertex is a holding, or a fact on the way to one. Of an edge, Arg is what the step is because of, the
// place of a pod or binding; DependsOn is the place in Graph.conditions of what else decides.
type (
	vertex = search.Vertex
	edge   = search.Edge
	join   = search.Join
	via    = search.Via
	row    = search.Row
)

const none = search.None

// vertexKind is what a vertex stands for. The first ones are holdings.
type vertexKind uint8

const (
	isClusterAdmin vertexKind = iota
	isNode
	isServiceAccount
	isUser
	isGroup
	isNamespace
	isSecret
	isPod
	// isNodeUser is a node's credential: the user system:node:NAME in the group
	// system:nodes.
	isNodeUser
	// isAssociated is a service account with a token that is associated with a node: it is of the node's credential, or of
	// each node's.
	isAssociated
	// isScoped is what each token of a service account in NodeScopes may do, whatever its node.
	isScoped
	// isSubject is a user or group that bindings name.
	isSubject
	// isRole is a role that is held in a scope.
	isRole
	// isRight is a right that some identity has.
	isRight
	// isOwnRight is a right that the attacker can give to each identity.
	isOwnRight
	// isLimited is an identity that is impersonated for one kind of request: it is of that identity, or of several.
	isLimited
	// isCustom is what follows from rights of custom techniques.
	isCustom
	// isFact is anything else; its name says what.
	isFact
)

// holdings are the kinds that are reported.
var holdingKinds = [...]string{
	isClusterAdmin: ClusterAdmin, isNode: Node, isServiceAccount: ServiceAccount, isUser: User, isGroup: Group,
	isNamespace: Namespace, isSecret: Secret, isPod: Pod, isNodeUser: User,
	isAssociated: ServiceAccount,
}

// compareKinds orders the kinds of holdings by what they are worth.
func compareKinds(a, b string) int {
	return slices.Index(holdingKinds[:], a) - slices.Index(holdingKinds[:], b)
}

// key identifies a vertex.
type key struct {
	kind vertexKind
	// variant tells apart what has the same name: of roles and subjects, who holds them;
	// of rights and limited identities, which right or request.
	variant uint16
	// namespace is the scope of a role or right; empty is the whole cluster.
	namespace, name string
	// role is the place of a role in Graph.roles.
	role int32
	// custom is the place of a custom technique in Graph.custom.
	custom int32
	// of is the identity that is impersonated, the credential of the node of a token or of the pods that a right is about, or
	// a part of a right that is made of two; zero for other vertices.
	of vertex
}

// given is the variant of a user of Cluster.Users, which may have groups.
const given = 1

func (k key) holding() (Holding, bool) {
	if int(k.kind) >= len(holdingKinds) {
		return Holding{}, false
	}
	return Holding{Kind: holdingKinds[k.kind], Namespace: k.namespace, Name: k.name}, true
}

// Graph is everything that techniques make possible in one cluster. It is safe for concurrent
// use once it is made.
type Graph struct {
	keys  []key
	index map[key]vertex
	edges *search.Graph

	// starts are the nodes and service accounts of the cluster.
	starts []vertex
	// goal is what advice keeps nodes from: cluster-admin, or a fact to which it and a target lead.
	goal vertex
	// firstPod is the vertex of the first pod; the others follow in their order.
	firstPod vertex

	pods []*inventory.Pod
	// existing is how many roles exist. The others are named by bindings; the last one is everyRule.
	existing   int
	roles      []rbac.RoleRules
	bindings   []rbac.BoundRole
	conditions []string
	// alsoImpersonated are identities that have another vertex for who only impersonates them.
	alsoImpersonated map[vertex]bool

	// scoped are the accounts that enforced scopes are about, by user, as far as they were looked up;
	// nil for others. enforced is how many scopes there are.
	scoped   map[inventory.Name]*scopedAccount
	enforced int
	// passedBy says how scopes let pass what an edge stands for.
	passedBy map[passing]passage

	custom []CustomTechnique
	// kinds are the kinds of requests by their rights. The kinds of custom techniques come last.
	kinds []requestKind
	// serves is Cluster.Serves, and open are the rights of each role that are not followed, as far as they were asked for.
	serves func(group, resource string) bool
	open   []atomic.Pointer[[]openRight]
	gaps   []Gap
	// guards are Cluster.admissionObjects.
	guards map[string][]inventory.Name
	world  *world
}

// New makes the graph of a cluster.
func New(c *Cluster) (*Graph, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	b := newBuilder(c)
	b.build()
	b.objects.rights, b.objects.claimed = b.Graph, b.references.Claimed
	b.Graph.world = &world{
		builder: b, from: map[vertex]*leading{}, remedies: map[stepPlace]*verdict.Remedy{}, made: map[*verdict.Remedy][]changeKey{},
	}
	b.open = make([]atomic.Pointer[[]openRight], len(b.roles))
	return b.Graph, nil
}

// find returns the vertex of a holding.
func (g *Graph) find(h Holding) (vertex, error) {
	kinds := []key{{kind: vertexKind(slices.Index(holdingKinds[:], h.Kind))}}
	switch h.Kind {
	case User: // a node's user is its credential unless it is given without the group of nodes
		kinds = []key{{kind: isUser, variant: given}, {kind: isNodeUser}, {kind: isUser}}
	case ServiceAccount:
		kinds = []key{{kind: isServiceAccount, variant: scopedStart}, {kind: isServiceAccount}}
	}
	for _, k := range kinds {
		k.namespace, k.name = h.Namespace, h.Name
		if v, ok := g.index[k]; ok {
			return v, nil
		}
	}
	return none, fmt.Errorf("%s is not in the cluster's state", h)
}

// table are all kinds of requests, and never changes: the rights of requestKinds, and with each mode of constrained
// impersonation a kind for every request, and one for each verb with which rights can be used then.
var table = listKinds()

func listKinds() []requestKind {
	all := slices.Clone(requestKinds[:])
	for m := associatedNode; m < modeCount; m++ {
		all = append(all, requestKind{verbs: standardVerbs[:1], on: m, whole: true}) // one verb stands for all
		for r := range rightCount {
			k := requestKinds[r]
			if k.beside || k.impersonates() {
				continue
			}
			k.on, k.of, k.refused = m, r, false
			for i := range k.verbs {
				k.verbs = requestKinds[r].verbs[i : i+1]
				all = append(all, k)
			}
		}
	}
	return all
}

// limit is the part of a kind of request that a rule covers: a namespace, or all if it is empty, and a name.
type limit struct{ namespace, name string }

// unnamed is the name of requests that have none, where a rule covers only these. No object has
// this name.
const unnamed = "/"

// verbOn is the verb that is allowed on the target of a request while a mode is used.
func (m mode) verbOn(verb string) string {
	if m == 0 {
		return verb
	}
	return "impersonate-on:" + m.String() + ":" + verb
}

// grantsEverything reports whether a rule is `*` on `*`.
func grantsEverything(rule *rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, "*") &&
		slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// coversWhole reports whether a rule is for every request on objects while a mode is used.
func coversWhole(rule *rbacv1.PolicyRule, m mode) bool {
	if grantsEverything(rule) {
		return true
	}
	for _, verb := range standardVerbs {
		if !slices.Contains(rule.Verbs, m.verbOn(verb)) {
			return false
		}
	}
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// and is what two limits have in common.
func (l limit) and(o limit) (both limit, ok bool) {
	both = l
	if l.namespace == "" {
		both.namespace = o.namespace
	}
	if l.name == "" {
		both.name = o.name
	}
	return both, l.covers(both.namespace, both.name) && o.covers(both.namespace, both.name)
}

// covers reports whether a limit contains the request for an object.
func (l limit) covers(namespace, name string) bool {
	return (l.namespace == "" || l.namespace == namespace) && (l.name == "" || l.name == name)
}

// rightName is the name that a right has whose requests a limit allows.
func (l limit) rightName() string {
	if l.name == unnamed {
		return ""
	}
	return l.name
}

// contains is the right that another right contains. To read: the API server answers a write or a
// deletion with the object, and a dry run too. Admission is asked about these requests. An update of
// a secret has to carry its content, and one of the status of a request its certificate. To create a mutating admission policy or its
// binding: whoever may change one that exists does as much with it.
func (r right) contains() (right, bool) {
	switch r {
	case patchSecrets, deleteSecrets:
		return readSecrets, true
	case writeSigningRequests, deleteSigningRequests, getApprovals, getSigningStatus, patchSigningStatus:
		return readSigningRequests, true
	case changeMutatingPolicies:
		return createMutatingPolicies, true
	case changeMutatingPolicyBindings:
		return createMutatingPolicyBindings, true
	}
	return 0, false
}

// alike lists the rights that give what a right gives: it, or the one that it contains, and each right that contains this.
func (r right) alike() []right {
	if contained, ok := r.contains(); ok {
		r = contained
	}
	all := []right{r}
	for other := range rightCount {
		if contained, ok := other.contains(); ok && contained == r {
			all = append(all, other)
		}
	}
	return all
}

// kindsFor is the table as an API server of the cluster asks for rights.
func kindsFor(c *Cluster) []requestKind {
	kinds := slices.Clone(table)
	if c.Features.Minor() < 35 { // a websocket is opened by a get
		kinds[execPods].verbs, kinds[attachPods].verbs = []string{"create", "get"}, []string{"create", "get"}
	}
	return kinds
}

// verbIn is the first verb by which rules grant a right for a name, or for all.
func (k *requestKind) verbIn(rules []rbacv1.PolicyRule, name string) string {
	for _, verb := range k.verbs {
		by := *k
		by.verbs = []string{verb}
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(by.namesBy(&rule), name) }) {
			return verb
		}
	}
	return k.verbs[0]
}

// usedRight follows a right back to the one that a role grants, or that scopes let pass, and finds
// its verb.
func (s *solver) usedRight(v vertex) (r right, verb string) {
	for {
		how, k := s.Via(v), s.keys[v]
		r = right(k.variant)
		if how.From == none {
			return r, requestKinds[r].verbs[0]
		}
		switch from := s.keys[how.From]; from.kind {
		case isRight:
			v = how.From
		case isRole:
			return r, s.kinds[r].verbIn(s.roles[from.role].Rules, k.name)
		case isLimited:
			if kind := s.kinds[from.variant]; kind.of == r {
				return r, kind.verbs[0]
			}
			return r, requestKinds[r].verbs[0] // by a request that applies the object
		default:
			if passed, ok := s.passedBy[passing{how.From, v}]; ok {
				return r, passed.verb
			}
			return r, requestKinds[r].verbs[0]
		}
	}
}

// partOf is the vertex of a right that a step needs together with other things; none if it does not need it.
func (s *solver) partOf(how via, r right) vertex {
	for _, v := range s.edges.Parts(how) {
		if k := s.keys[v]; k.kind == isRight && right(k.variant) == r {
			return v
		}
	}
	return none
}

// verbOfPart is the verb of such a right.
func (s *solver) verbOfPart(how via, r right) string {
	if v := s.partOf(how, r); v != none {
		_, verb := s.usedRight(v)
		return verb
	}
	return requestKinds[r].verbs[0]
}
