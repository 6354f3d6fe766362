package attackpaths

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// stolen is what a pod brings to the node that it is moved to.
type stolen struct {
	namespace, account string
	secrets            string // joined
	token              bool
	placement          inventory.Placement
}

// stealPods adds the pods that each node may get. Nodes that the scheduler does not tell
// apart, whatever labels they give themselves, share one vertex.
func (b *builder) stealPods() {
	kinds := b.movable()
	if len(kinds) == 0 {
		return
	}
	placements := map[inventory.Placement][]int32{}
	for _, i := range kinds {
		p := b.pods[i].Placement
		placements[p] = append(placements[p], i)
	}
	classes := map[string]vertex{}
	for i := range b.nodes {
		n := &b.nodes[i]
		class := classOf(n)
		v, ok := classes[class]
		if !ok {
			v = b.fact(fmt.Sprintf("pods that may move to nodes like %s", n.Name), "")
			classes[class] = v
			for _, j := range kinds {
				if p := b.pods[j]; p.Placement.Allows(n, noderestriction.OwnLabel) {
					b.moved(v, p, j)
				}
			}
		}
		from := b.vertex(key{kind: isNode, name: n.Name})
		b.out[from] = append(b.out[from], edge{to: v, arg: -1})
	}
}

// movable are pods that controllers or the scheduler may put on another node, one for each
// account, set of secrets and placement.
func (b *builder) movable() []int32 {
	seen := map[stolen]bool{}
	var kinds []int32
	for i, p := range b.pods {
		boundWithoutWorkload := p.Node != "" && p.Workload == (inventory.Workload{})
		if p.Mirror || p.Placement.Pinned() || p.Workload.Resource == "daemonsets" || boundWithoutWorkload {
			continue
		}
		s := stolen{namespace: p.Namespace, account: p.ServiceAccount, secrets: fmt.Sprint(p.Secrets), placement: p.Placement}
		s.token = slices.Contains(p.Audiences, "")
		if (len(p.Audiences) == 0 && len(p.Secrets) == 0) || seen[s] {
			continue
		}
		seen[s] = true
		kinds = append(kinds, int32(i))
	}
	return kinds
}

// moved adds what a pod brings.
func (b *builder) moved(v vertex, p *inventory.Pod, i int32) {
	if p.ServiceAccount != "" && slices.Contains(p.Audiences, "") {
		b.step(StealPods, v, b.accountVertex(p.Namespace, p.ServiceAccount), i, dependsOnPlacement)
	}
	for _, name := range p.Secrets {
		b.step(StealPods, v, b.vertex(key{kind: isSecret, namespace: p.Namespace, name: name}), i, dependsOnPlacement)
	}
}

// classOf is the same for nodes that differ only in what they may change themselves.
func classOf(n *inventory.Node) string {
	labels := map[string]string{}
	for k, v := range n.Labels {
		if !noderestriction.OwnLabel(k) {
			labels[k] = v
		}
	}
	taints := slices.Clone(n.Taints)
	for i := range taints {
		taints[i].TimeAdded = nil
	}
	slices.SortFunc(taints, func(x, y corev1.Taint) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value), cmp.Compare(x.Effect, y.Effect))
	})
	text, err := json.Marshal([]any{labels, taints})
	if err != nil {
		panic("labels and taints do not encode: " + err.Error())
	}
	return string(text)
}
