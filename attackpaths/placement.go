package attackpaths

import (
	"encoding/binary"
	"encoding/json"
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

// stealPods adds the pods that each node may get. Nodes that may get the same pods share a
// vertex, and so do pods with the same placement.
func (b *builder) stealPods() {
	byPlacement := b.movablePods()
	if len(byPlacement) == 0 {
		return
	}
	// Of pods of a known size, the size of a node matters.
	sized := slices.DeleteFunc(slices.Clone(byPlacement), func(p *placed) bool { return !p.placement.HasRequests() })
	classes, sets := map[string]vertex{}, map[string]vertex{}
	for i := range b.nodes {
		n := &b.nodes[i]
		class := classOf(n)
		for _, p := range sized {
			class += strconv.FormatBool(p.placement.Fits(n))
		}
		v, ok := classes[class]
		if !ok {
			v = b.movableTo(n, noderestriction.OwnLabel, "", sets)
			classes[class] = v
		}
		from := b.vertex(key{kind: isNode, name: n.Name})
		b.implies(from, v)
		for _, p := range byPlacement {
			if p.scoped && p.placement.Allows(n, noderestriction.OwnLabel) {
				b.movedTo(from, n, p)
			}
		}
	}
}

// movablePods groups the pods that may move, once.
func (b *builder) movablePods() []*placed {
	if b.movables == nil {
		b.movables = append([]*placed{}, b.byPlacement(b.movable())...)
	}
	return b.movables
}

// movedTo adds the accounts in scopes that pods bring: their tokens are of the node.
func (b *builder) movedTo(from vertex, n *inventory.Node, all *placed) {
	for _, i := range all.pods {
		p := b.pods[i]
		if a := b.scopeOf(p.Namespace, p.ServiceAccount); a != nil && slices.Contains(p.Audiences, "") {
			b.step(StealPods, from, b.tokenVertex(a.namespace, a.name, b.nodeUserVertex(n.Name), 0), i, dependsOnPlacement)
		}
	}
}

// placed are pods with one placement.
type placed struct {
	placement inventory.Placement
	pods      []int32
	// scoped is true if a pod has an account in scopes.
	scoped bool
	// vertex leads to what the pods bring, and labelled to the same where an account labels the node; none until a
	// node may get them.
	vertex, labelled vertex
}

// byPlacement groups pods, in their order.
func (b *builder) byPlacement(pods []int32) []*placed {
	index := map[inventory.Placement]*placed{}
	var all []*placed
	for _, i := range pods {
		p := b.pods[i].Placement
		if index[p] == nil {
			index[p] = &placed{placement: p, vertex: none, labelled: none}
			all = append(all, index[p])
		}
		index[p].pods = append(index[p].pods, i)
		if pod := b.pods[i]; b.scopeOf(pod.Namespace, pod.ServiceAccount) != nil {
			index[p].scoped = true
		}
	}
	return all
}

// movableTo is the vertex of the pods that may move to a node that may get labels. Sets has those that are made,
// by the placements that they allow. How names the way to get labels.
func (b *builder) movableTo(n *inventory.Node, own func(string) bool, how string, sets map[string]vertex) vertex {
	var allowed []*placed
	id := []byte(how)
	for i, p := range b.movablePods() {
		if p.placement.Allows(n, own) {
			allowed, id = append(allowed, p), binary.AppendUvarint(id, uint64(i))
		}
	}
	v, ok := sets[string(id)]
	if ok {
		return v
	}
	v = b.fact("pods that may move to nodes like "+n.Name+how, "")
	sets[string(id)] = v
	for _, p := range allowed {
		b.implies(v, b.broughtBy(p, how))
	}
	return v
}

// broughtBy leads to what pods bring.
func (b *builder) broughtBy(p *placed, how string) vertex {
	to := &p.vertex
	if how != "" {
		to = &p.labelled
	}
	if *to == none {
		*to = b.fact("pods that may move like "+b.pods[p.pods[0]].Name.String()+how, "")
		for _, i := range p.pods {
			b.moved(*to, i)
		}
	}
	return *to
}

// movable are pods that controllers or the scheduler may put on another node, one for each
// account, set of secrets and placement.
func (b *builder) movable() []int32 {
	seen := map[stolen]bool{}
	var kinds []int32
	for i, p := range b.pods {
		if b.terminating[p.Namespace] || !mayMove(p) {
			continue // in a namespace that terminates, no pod is made or bound to a node
		}
		brings := stolen{
			namespace: p.Namespace, account: p.ServiceAccount, secrets: strings.Join(p.Secrets, "/"),
			token: slices.Contains(p.Audiences, ""), placement: p.Placement,
		}
		if !seen[brings] && (p.Planned || !p.Placement.Pinned()) {
			seen[brings] = true
			kinds = append(kinds, int32(i))
		}
	}
	return kinds
}

// mayMove reports whether a pod that is not pinned may be put on another node, and brings
// something.
func mayMove(p *inventory.Pod) bool {
	boundWithoutWorkload := p.Node != "" && p.Workload == (inventory.Workload{})
	brings := len(p.Audiences) > 0 || len(p.Secrets) > 0
	ofDaemonSet := p.Workload.Resource == "daemonsets" && !p.Planned
	return brings && !p.Mirror && !ofDaemonSet && !boundWithoutWorkload && (!p.Ended || p.Workload != (inventory.Workload{}))
}

// moved adds what a pod brings.
func (b *builder) moved(v vertex, i int32) {
	p := b.pods[i]
	if p.ServiceAccount != "" && slices.Contains(p.Audiences, "") && b.scopeOf(p.Namespace, p.ServiceAccount) == nil {
		b.step(StealPods, v, b.templateOf(p).account, i, dependsOnPlacement)
	}
	for _, secret := range b.templateOf(p).secrets {
		b.step(StealPods, v, secret, i, dependsOnPlacement)
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
	text, err := json.Marshal([]any{labels, taints})
	if err != nil {
		panic("labels and taints do not encode: " + err.Error())
	}
	return string(text)
}
