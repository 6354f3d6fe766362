package attackpaths

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
