package attackpaths

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// vertex is a holding, or a fact on the way to one.
type vertex int32

// none is no vertex.
const none vertex = -1

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

// edge leads from one vertex to another.
type edge struct {
	to vertex
	// arg is what the step is because of: the place of a pod or binding.
	arg int32
	// dependsOn is the place in Graph.conditions of what else decides; zero is nothing.
	dependsOn int32
	row       row
}

// join leads from several vertices together to another.
type join struct {
	from []vertex
	edge
}

// Graph is everything that techniques make possible in one cluster. It is safe for concurrent
// use once it is made.
type Graph struct {
	keys  []key
	index map[key]vertex
	out   [][]edge
	joins []join
	// joinsOf are the places of the joins that a vertex is a part of.
	joinsOf [][]int32

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

	// solvers are those that are not in use.
	solvers sync.Pool
	custom  []CustomTechnique
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
	b.Graph.world = newWorld(b)
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
