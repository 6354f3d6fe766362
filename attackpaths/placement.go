package attackpaths

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// stolen is what a pod brings to the node that it is moved to.
type stolen struct {
	namespace, account string
	secrets            string // joined
	token              bool
	placement          inventory.Placement
}

// placed are pods with one placement that controllers or the scheduler may put on another node, one for each account and set of
// secrets.
type placed struct {
	placement inventory.Placement
	pods      []int32
	// scoped are the pods that bring the token of an account in scopes, which is of the node.
	scoped []int32
}

// moves are the pods that a node may get: what they bring but tokens of accounts in scopes, and the pods that bring these.
type moves struct {
	brought vertex
	scoped  []int32
}

// stealPods adds the pods that each node may get. Nodes that may get the same pods share a
// vertex, and so do pods with the same placement.
func (b *builder) stealPods() {
	if len(b.movable) == 0 {
		return
	}
	// Of pods of a known size, the size of a node matters.
	sized := slices.DeleteFunc(slices.Clone(b.movable), func(p *placed) bool { return !p.placement.HasRequests() })
	classes := map[string]moves{}
	for i := range b.nodes {
		n := &b.nodes[i]
		class := classOf(n)
		for _, p := range sized {
			class += strconv.FormatBool(p.placement.Fits(n))
		}
		all, ok := classes[class]
		if !ok {
			all = b.movesTo(n, noderestriction.OwnLabel, "")
			classes[class] = all
		}
		b.gets(b.vertex(key{kind: isNode, name: n.Name}), n.Name, all)
	}
}

// movablePods groups the pods that may move, in their order.
func (b *builder) movablePods() []*placed {
	seen, index := map[stolen]bool{}, map[inventory.Placement]*placed{}
	var all []*placed
	for i, p := range b.pods {
		if b.terminating[p.Namespace] || !mayMove(p) {
			continue // in a namespace that terminates, no pod is made or bound to a node
		}
		brings := stolen{
			namespace: p.Namespace, account: p.ServiceAccount, secrets: strings.Join(p.Secrets, "/"),
			token: slices.Contains(p.Audiences, ""), placement: p.Placement,
		}
		if seen[brings] || !p.Planned && p.Placement.Pinned() {
			continue
		}
		seen[brings] = true
		of := index[p.Placement]
		if of == nil {
			of = &placed{placement: p.Placement}
			index[p.Placement], all = of, append(all, of)
		}
		of.pods = append(of.pods, int32(i))
		if brings.token && b.scopeOf(p.Namespace, p.ServiceAccount) != nil {
			of.scoped = append(of.scoped, int32(i))
		}
	}
	return all
}

// mayMove reports whether a pod that is not pinned may be put on another node, and brings
// something.
func mayMove(p *inventory.Pod) bool {
	boundWithoutWorkload := p.Node != "" && p.Workload == (inventory.Workload{})
	brings := len(p.Audiences) > 0 || len(p.Secrets) > 0
	ofDaemonSet := p.Workload.Resource == "daemonsets" && !p.Planned
	return brings && !p.Mirror && !ofDaemonSet && !boundWithoutWorkload && (!p.Ended || p.Workload != (inventory.Workload{}))
}

// movesTo finds the pods that may move to a node that may get labels. How names the way to get labels.
func (b *builder) movesTo(n *inventory.Node, own func(string) bool, how string) moves {
	var all moves
	var brought []vertex
	var names []string
	for _, p := range b.movable {
		if p.placement.Allows(n, own) {
			name := b.pods[p.pods[0]].Name.String()
			brought, names, all.scoped = append(brought, b.broughtBy(p, name, how)), append(names, name), append(all.scoped, p.scoped...)
		}
	}
	var known bool
	if all.brought, known = b.newFact("pods that may move"+how, strings.Join(names, " ")); !known {
		for _, v := range brought {
			b.implies(all.brought, v)
		}
	}
	return all
}

// broughtBy leads to what pods bring. Name is the name of the first one.
func (b *builder) broughtBy(p *placed, name, how string) vertex {
	v, known := b.newFact("pods that may move like one"+how, name)
	if known {
		return v
	}
	for _, i := range p.pods {
		p := b.pods[i]
		if p.ServiceAccount != "" && slices.Contains(p.Audiences, "") && b.scopeOf(p.Namespace, p.ServiceAccount) == nil {
			b.step(StealPods, v, b.templateOf(p).account, i, dependsOnPlacement)
		}
		for _, secret := range b.templateOf(p).secrets {
			b.step(StealPods, v, secret, i, dependsOnPlacement)
		}
	}
	return v
}

// newFact is the vertex of a fact, which may be known already.
func (b *builder) newFact(name, namespace string) (v vertex, known bool) {
	known = b.has(key{kind: isFact, namespace: namespace, name: name})
	return b.fact(name, namespace), known
}

// gets leads from who has a node to what pods bring to it.
func (b *builder) gets(v vertex, node string, all moves) {
	b.implies(v, all.brought)
	for _, i := range all.scoped {
		p := b.pods[i]
		b.step(StealPods, v, b.tokenVertex(p.Namespace, p.ServiceAccount, b.nodeUserVertex(node), 0), i, dependsOnPlacement)
	}
}

// classOf is the same for nodes that differ only in what they may change themselves.
func classOf(n *inventory.Node) string {
	labels := maps.Clone(n.Labels)
	maps.DeleteFunc(labels, func(k, _ string) bool { return noderestriction.OwnLabel(k) })
	taints := slices.Clone(n.Taints)
	for i := range taints {
		taints[i].TimeAdded = nil
	}
	return fmt.Sprintf("%q %q", labels, taints)
}

// DaemonSet is what a DaemonSet gives to each node on which it has a pod.
type DaemonSet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Nodes are those on which the DaemonSet has a pod, sorted.
	Nodes []string `json:"nodes"`
	// Through is the service account or secret that the pods bring to the nodes, and Path
	// leads from it to cluster-admin. Both are empty if ClusterAdmin is No.
	Through      Holding   `json:"through"`
	ClusterAdmin Certainty `json:"clusterAdmin"`
	Path         []Step    `json:"path,omitempty"`
}

// DaemonSets lists the DaemonSets that have pods on nodes, by namespace and name, and whether
// the service account and the secrets of such a pod lead to cluster-admin from any node. The
// rights that a pod has over its own host do not count: a node has them anyway.
func (g *Graph) DaemonSets() []DaemonSet {
	pods := map[inventory.Name][]int32{}
	for i, p := range g.pods {
		if p.Workload.Resource == "daemonsets" && p.Node != "" {
			name := inventory.Name{Namespace: p.Namespace, Name: p.Workload.Name}
			pods[name] = append(pods[name], int32(i))
		}
	}
	names := slices.SortedFunc(maps.Keys(pods), func(a, b inventory.Name) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	r := g.newReach()
	defer r.release()
	all := make([]DaemonSet, len(names))
	for i, name := range names {
		all[i] = DaemonSet{Namespace: name.Namespace, Name: name.Name}
		var templates []int32 // one pod of each template: while a DaemonSet is rolled out, its pods differ
		seen := map[*inventory.Template]bool{}
		for _, pod := range pods[name] {
			all[i].Nodes = append(all[i].Nodes, g.pods[pod].Node)
			if t := g.pods[pod].Template; !seen[t] {
				seen[t], templates = true, append(templates, pod)
			}
		}
		slices.Sort(all[i].Nodes)
		all[i].Nodes = slices.Compact(all[i].Nodes)
		all[i].reach(g, templates, r)
	}
	return all
}

// reach finds the shortest path from what pods bring to their nodes; a certain one comes first.
func (d *DaemonSet) reach(g *Graph, pods []int32, r reach) {
	admin := g.index[key{kind: isClusterAdmin}]
	for _, certainty := range [...]Certainty{Certain, Possible} {
		var brought []vertex
		for _, pod := range pods {
			brought = append(brought, g.broughtByPod(pod, certainty == Possible)...)
		}
		slices.Sort(brought)
		s, best := r.by(certainty), int32(math.MaxInt32)
		for _, from := range slices.Compact(brought) {
			if s.SolveUntil(from, admin); s.Has(admin) && s.Cost(admin) < best {
				best, d.ClusterAdmin, d.Path = s.Cost(admin), certainty, s.path(admin)
				d.Through, _ = g.keys[from].holding()
			}
		}
		if d.ClusterAdmin != No {
			return
		}
	}
}

// broughtByPod are the service accounts and secrets that a node holds because of a pod.
func (g *Graph) broughtByPod(pod int32, possible bool) []vertex {
	p := g.pods[pod]
	node := g.index[key{kind: isNode, name: p.Node}]
	from := []vertex{node}
	for _, e := range g.edges.Out[node] {
		if g.keys[e.To].kind == isNodeUser {
			from = append(from, e.To)
		}
	}
	from = append(from, g.firstPod+vertex(pod))
	var all []vertex
	for _, v := range from {
		for _, e := range g.edges.Out[v] {
			brought := e.Arg == pod && e.Row != 0 && isOfPod(e.Row) && (possible || e.DependsOn == 0)
			k := g.keys[e.To]
			isToken := k.kind == isAssociated && g.isScopedAccount(k)
			if brought && (k.kind == isServiceAccount || k.kind == isSecret || isToken) {
				all = append(all, e.To)
			}
		}
	}
	return all
}

// guardsInNew names what may be asked about a new namespace, and about pods in it and what makes them.
// The attacker chooses the labels, but which labels a webhook or policy leaves out is not examined.
func (b *builder) guardsInNew(r right) string {
	var texts []string
	for i := range b.admission {
		a := &b.admission[i]
		covers := func(asked right) bool { return a.Covers(writeOf(asked), nil) }
		if slices.ContainsFunc([]right{createNamespaces, createPods, r}, covers) {
			texts = append(texts, a.String())
		}
	}
	return allOf(texts...)
}

// admissionObjects are the names of what guards writes, by the resource: configurations of webhooks, and policies and
// bindings that refuse something.
func (c *Cluster) admissionObjects() map[string][]inventory.Name {
	const policies, bindings = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
	names := map[string][]inventory.Name{
		"mutatingwebhookconfigurations":   c.Inventory.Names("MutatingWebhookConfiguration"),
		"validatingwebhookconfigurations": c.Inventory.Names("ValidatingWebhookConfiguration"),
		policies:                          nil, bindings: nil,
	}
	for _, a := range c.Inventory.Admission() {
		if isPolicy(a) {
			names[policies] = append(names[policies], inventory.Name{Name: a.Name})
			names[bindings] = append(names[bindings], inventory.Name{Name: a.Webhook})
		}
	}
	return names
}

// mayChange reports whether there is an object that a right to change some names of a resource is about; no name and the
// empty one stand for all. The state does not show each resource.
func (g *Graph) mayChange(resource string, names ...string) bool {
	objects, shown := g.guards[resource]
	return !shown || len(objects) > 0 && (len(names) == 0 || slices.Contains(names, "")) ||
		slices.ContainsFunc(objects, func(o inventory.Name) bool { return slices.Contains(names, o.Name) })
}

// mayRun reports whether a pod has a node, or gets one in the state that is asked about, and has not ended.
func mayRun(p *inventory.Pod) bool { return (p.Node != "" || p.Planned) && !p.Ended }

// starting is what else decides about processes that are started in a pod.
func starting(p *inventory.Pod) string {
	if p.Pending {
		return "whether containers of the pod have started, whose phase is Pending"
	}
	return ""
}

// toNothing reports whether a vertex is a right that nothing can be done with.
func (b *builder) toNothing(v vertex) bool {
	k := b.keys[v]
	return k.kind == isRight && b.neverCreates(right(k.variant), k.namespace)
}

// neverCreates reports whether a right is one to create something in a namespace that terminates: the API server creates
// nothing in it, not even a token, also for kubelets. Only aggregated API servers have other subresources of custom resources, and
// decide themselves.
func (b *builder) neverCreates(r right, namespace string) bool {
	k := &b.kinds[r]
	creates := k.unnamed || r == createToken || k.custom && k.subresource == "" && k.operation() == admissionv1.Create
	return b.terminating[namespace] && creates
}

// NodeRestriction holds nodes, not accounts: one that may change nodes gives a node that the attacker
// holds every label, those that no node may set on itself too, and takes its taints. The status of a
// node has labels, and no taints.

// byAccounts ends the names of facts about pods that move because an account labels a node.
const byAccounts = " when accounts label nodes"

// labelsNodes gives what moves to nodes that are held to who may change them.
func (b *builder) labelsNodes(v vertex, k key) {
	name := untaintedNode
	if right(k.variant) == changeNodeStatus {
		name = labelledNode
	}
	for _, n := range b.nodes {
		if k.name == "" || k.name == n.Name {
			b.together("", b.fact(name, n.Name), "", v, b.vertex(key{kind: isNode, name: n.Name}))
		}
	}
}

func (b *builder) expandLabelledNode(v vertex, k key) {
	n := *b.node(k.namespace)
	if k.name == untaintedNode {
		n.Taints = nil
	}
	b.gets(v, n.Name, b.movesTo(&n, func(string) bool { return true }, byAccounts))
}

// labelsFromOutside reports whether nodes that are not in a pool hold an account that may change labels or taints of
// nodes: the pool rests on these.
func (b *builder) labelsFromOutside(pool []string) bool {
	var outside []vertex
	for _, n := range b.nodes {
		if !slices.Contains(pool, n.Name) {
			outside = append(outside, b.vertex(key{kind: isNode, name: n.Name}))
		}
	}
	s := b.solver(true)
	defer s.Release()
	s.Solve(outside...)
	for v, k := range b.keys {
		if k.kind == isRight && (right(k.variant) == changeNodes || right(k.variant) == changeNodeStatus) && s.Has(vertex(v)) {
			return true
		}
	}
	return false
}
