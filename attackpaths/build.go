package attackpaths

import (
	"math"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// builder makes a Graph. Vertices are expanded once, in the order in which they appear, so
// that the same cluster gives the same graph.
type builder struct {
	*Graph
	cluster *Cluster
	// objects are the cluster's, unless others are set before the graph is built.
	objects *objects
	// expanded is how many vertices have their edges.
	expanded int
	// templates are the vertices of what pods name, as far as they have been looked up.
	templates map[*inventory.Template]*templateVertices

	nodes      []inventory.Node
	namespaces []string
	accounts   map[string][]string // by namespace
	// accountNames are also those that only bindings name.
	accountNames map[string][]string
	secrets      map[string][]inventory.Secret
	podsIn       map[string][]int32
	podsOn       map[string][]int32
	admission    []inventory.Admission
	// references has the claims that have or may get volumes of nodes, and the free volumes of nodes that give something; claimsIn has
	// the claims by namespace.
	references inventory.References
	claimsIn   map[string][]inventory.Name
	// bindable are the vertices of the lists of volumes to which claims may be bound.
	bindable    map[*inventory.Volume]vertex
	labels      map[string]map[string]string // of namespaces
	terminating map[string]bool
	covered     map[coveringKey][]*inventory.Admission
	// guardTexts say what else decides about writes, and split which namespaces are several vertices.
	guardTexts map[guardKey]string
	split      map[string]bool

	roleRights     map[int32]*roleRights
	roleIndex      map[roleName]int32
	conditionIndex map[string]int32
	// given are the groups of Cluster.Users by name.
	given      map[string][]string
	identities []*identity
	// roleVertices are the vertices of roles, and requestReads the keys of rights to read
	// signing requests.
	roleVertices []vertex
	requestReads []key
	// owned are the rights that the attacker can give to each identity that it holds, because it can bind the role that
	// grants them to any subject.
	owned []vertex
	impersonator
	// impersonatedSubjects are the vertices of subjects for identities that are impersonated.
	impersonatedSubjects map[vertex]vertex
	// groups are every group that bindings name, and groupsCombine is true if one has a right that counts together with others.
	groups        []vertex
	groupsCombine bool
	// movable are the pods that may move.
	movable []*placed
	// secretsKnown are the names of secrets; nil until they are asked for.
	secretsKnown map[inventory.Name]bool
	// named are the rights to create objects that some rule limits to names; nil until roles are read.
	named map[right]bool
	// target is what nodes are kept from; cluster-admin if it is zero.
	target Holding
}

func newBuilder(c *Cluster) *builder {
	return &builder{
		Graph: &Graph{
			index: map[key]vertex{}, conditions: []string{""}, alsoImpersonated: map[vertex]bool{}, passedBy: map[passing]passage{},
			serves: c.Serves, kinds: kindsFor(c), guards: c.admissionObjects(),
		},
		cluster: c, accounts: map[string][]string{}, secrets: map[string][]inventory.Secret{},
		podsIn: map[string][]int32{}, podsOn: map[string][]int32{}, labels: map[string]map[string]string{},
		terminating: map[string]bool{},
		roleRights:  map[int32]*roleRights{}, conditionIndex: map[string]int32{},
		given:   map[string][]string{},
		covered: map[coveringKey][]*inventory.Admission{}, guardTexts: map[guardKey]string{},
		split: map[string]bool{}, impersonatedSubjects: map[vertex]vertex{},
		bindable: map[*inventory.Volume]vertex{},
	}
}

// build adds every vertex that a start can be or lead to.
func (b *builder) build() {
	b.collect()
	b.reserve()
	b.collectCustom()
	b.collectScopes()
	b.movable = b.movablePods()
	b.vertex(key{kind: isClusterAdmin})
	b.startImpersonation()
	for _, n := range b.nodes {
		b.starts = append(b.starts, b.vertex(key{kind: isNode, name: n.Name}))
	}
	for _, ns := range b.namespaces {
		for _, name := range b.accounts[ns] {
			b.starts = append(b.starts, b.startVertex(ns, name))
		}
		for _, s := range b.secrets[ns] {
			b.vertex(key{kind: isSecret, namespace: ns, name: s.Name.Name})
		}
	}
	b.firstPod = vertex(len(b.keys))
	for _, p := range b.pods {
		b.vertex(key{kind: isPod, namespace: p.Namespace, name: p.Name.Name})
	}
	b.addSubjects()
	for _, u := range b.cluster.Users {
		b.given[u.Name] = u.Groups
		b.vertex(key{kind: isUser, variant: given, name: u.Name})
	}
	for _, user := range b.subjectsOf("User") {
		if k := userKey(user); k.kind == isServiceAccount {
			b.startVertex(k.namespace, k.name)
		} else {
			b.vertex(k)
		}
	}
	for _, group := range b.subjectsOf("Group") {
		b.vertex(key{kind: isGroup, name: group})
	}
	b.drain()
	b.stealPods()
	b.drain()
	b.combineRights()
	b.setGoal()
}

// setGoal makes a goal of the target. Cluster-admin owns everything, and so leads to each target.
func (b *builder) setGoal() {
	b.goal = b.index[key{kind: isClusterAdmin}]
	if b.target == (Holding{}) || b.target.Kind == ClusterAdmin {
		return
	}
	ends, err := b.ends(b.target)
	if err != nil {
		return // the cluster does not have it after a change, and cluster-admin would own it
	}
	b.goal = b.fact(targetReached, "")
	for _, v := range ends {
		b.implies(v, b.goal)
	}
}

// everyRule is a role as one who may escalate can make it. It is the last of Graph.roles.
var everyRule = rbac.RoleRules{
	Role:  rbac.Ref{Kind: "ClusterRole", Name: "*"},
	Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
}

// vertex finds a vertex, or adds it to those that are expanded.
func (b *builder) vertex(k key) vertex {
	if v, ok := b.index[k]; ok {
		return v
	}
	if len(b.keys) == math.MaxInt32 {
		panic("attack paths: more than 2^31 vertices")
	}
	v := b.edges.AddVertex()
	b.index[k] = v
	b.keys = append(b.keys, k)
	switch {
	case k.kind == isRole:
		b.roleVertices = append(b.roleVertices, v)
	case k.kind == isOwnRight && k.of == 0:
		b.owned = append(b.owned, v)
	case k.kind == isRight && right(k.variant) == readSigningRequests:
		b.requestReads = append(b.requestReads, k)
	}
	return v
}

// has reports whether there is a vertex.
func (b *builder) has(k key) bool {
	_, ok := b.index[k]
	return ok
}

// fact is the vertex of a fact by name.
func (b *builder) fact(name, namespace string) vertex {
	return b.vertex(key{kind: isFact, namespace: namespace, name: name})
}

// implies adds an edge that is a part of another step.
func (b *builder) implies(from, to vertex) { b.step("", from, to, -1, "") }

// impliesIf is implies where something else decides.
func (b *builder) impliesIf(from, to vertex, dependsOn string) { b.step("", from, to, -1, dependsOn) }

// impliesBy is implies for a right that a binding gives.
func (b *builder) impliesBy(from, to vertex, binding int32) { b.step("", from, to, binding, "") }

// step adds an edge that is a step of a technique; with the empty code it is a part of another step. Arg is what it is because
// of; dependsOn is what else decides, empty if nothing does. No vertex is one that nothing can be done with.
func (b *builder) step(code Code, from, to vertex, arg int32, dependsOn string) {
	if to != none {
		b.edges.AddEdge(from, edge{To: to, Arg: arg, Row: rowOf(code), DependsOn: b.condition(dependsOn)})
	}
}

// together adds a step that needs several vertices.
func (b *builder) together(code Code, to vertex, dependsOn string, from ...vertex) {
	b.togetherBy(code, to, -1, dependsOn, from...)
}

// togetherBy is together for rights that a binding gives.
func (b *builder) togetherBy(code Code, to vertex, binding int32, dependsOn string, from ...vertex) {
	b.join(edge{To: to, Arg: binding, Row: rowOf(code), DependsOn: b.condition(dependsOn)}, from...)
}

// join adds an edge that needs several vertices, of which some may be none.
func (b *builder) join(e edge, from ...vertex) {
	if e.To == none || b.toNothing(e.To) {
		return
	}
	slices.Sort(from)
	b.edges.AddJoin(e, slices.Compact(slices.DeleteFunc(from, func(v vertex) bool { return v == none })))
}

func (b *builder) condition(text string) int32 {
	if text == "" {
		return 0
	}
	i, ok := b.conditionIndex[text]
	if !ok {
		i = int32(len(b.conditions))
		b.conditions = append(b.conditions, text)
		b.conditionIndex[text] = i
	}
	return i
}

// drain expands vertices until there are no new ones.
func (b *builder) drain() {
	for ; b.expanded < len(b.keys); b.expanded++ {
		v := vertex(b.expanded)
		b.expand(v, b.keys[v])
		if len(b.terminating) > 0 {
			b.edges.Out[v] = slices.DeleteFunc(b.edges.Out[v], func(e edge) bool { return b.toNothing(e.To) })
		}
	}
}

// expand adds the edges of a vertex.
func (b *builder) expand(v vertex, k key) {
	switch k.kind {
	case isNode:
		b.expandNode(v, k)
	case isNodeUser:
		b.expandNodeUser(v, k)
	case isServiceAccount:
		b.expandServiceAccount(v, k)
	case isAssociated:
		b.expandAssociated(v, k)
	case isScoped:
		b.expandScoped(v, k)
	case isUser, isGroup:
		b.expandUser(v, k)
	case isNamespace:
		b.expandNamespace(v, k)
	case isSecret:
		b.expandSecret(v, k)
	case isPod:
		b.expandPod(v)
	case isRole:
		b.expandRole(v, k)
	case isRight:
		b.expandRight(v, k)
	case isCustom:
		b.expandCustom(v, k)
	case isFact:
		b.expandFact(v, k)
	}
}

// reserve makes room for the vertices of what the cluster holds, and as many for rights and facts
// as a usual cluster needs.
func (b *builder) reserve() {
	n := 2*len(b.nodes) + len(b.pods) + 4*len(b.roles) + 4*len(b.bindings)
	for _, ns := range b.namespaces {
		n += len(b.accounts[ns]) + len(b.secrets[ns])
	}
	b.templates = map[*inventory.Template]*templateVertices{}
	b.index = make(map[key]vertex, n)
	b.keys, b.edges = make([]key, 0, n), search.New(n)
}

// templateVertices are the vertices of what the pods of a template name. They are looked up once for all its pods.
type templateVertices struct {
	account vertex // none if they have none
	// scoped is what scopes say about the account; nil if none is about it.
	scoped *scopedAccount
	// volumes are the secrets that lie in volumes.
	secrets, volumes []vertex
}

// templateOf returns the vertices of what a pod names.
func (b *builder) templateOf(p *inventory.Pod) *templateVertices {
	t := b.templates[p.Template]
	if t != nil {
		return t
	}
	t = &templateVertices{account: none}
	if p.ServiceAccount != "" {
		t.account, t.scoped = b.accountVertex(p.Namespace, p.ServiceAccount), b.scopeOf(p.Namespace, p.ServiceAccount)
	}
	for _, name := range p.Secrets {
		v := b.vertex(key{kind: isSecret, namespace: p.Namespace, name: name})
		t.secrets = append(t.secrets, v)
		if slices.Contains(p.VolumeSecrets, name) {
			t.volumes = append(t.volumes, v)
		}
	}
	b.templates[p.Template] = t
	return t
}
