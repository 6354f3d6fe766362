package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changes lists the changes that place pods in a pool.
func (p *Placing) changes() []changeKey {
	var all []changeKey
	for _, w := range p.Workloads {
		all = append(all, changeKey{kind: placePods, object: w.Object, placing: p})
	}
	return all
}

// remedy labels and taints the nodes of the pool, and places the pods.
func (p *placer) remedy() *verdict.Remedy {
	r := &verdict.Remedy{
		Warning: "Pods of others stay on the nodes of the pool until they are moved, and pods that are pending need room there.",
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if !slices.Contains(p.placing.Nodes, n.Name) {
			continue
		}
		e := editor{apiVersion: "v1", object: verdict.Object{Kind: Node, Name: n.Name}}
		e.do(verdict.Add, "/metadata/labels/"+escaped(poolLabel), poolValue)
		if len(n.Taints) > 0 {
			e.do(verdict.Add, "/spec/taints/-", p.placing.Taint)
		} else {
			e.do(verdict.Add, "/spec/taints", []any{p.placing.Taint})
		}
		r.Changes = append(r.Changes, e.changes...)
	}
	// Also those that no node has yet: the scheduler would bind them as they are.
	changes, _ := p.objects.renderTemplates(p.placing.changes(), nil)
	r.Changes = append(r.Changes, changes...)
	r.Disrupts = disruption(r.Changes)
	return r
}

// placeIn selects the nodes of the pool, and tolerates their taint.
func (t *template) placeIn(pod *inventory.Pod, placing *Placing) {
	t.selectNodes(pod, poolLabel, poolValue)
	toleration := inventory.TolerationOf(placing.Taint)
	if pod.Placement.Tolerates() {
		t.do(verdict.Add, t.spec+"/tolerations/-", toleration)
	} else {
		t.do(verdict.Add, t.spec+"/tolerations", []any{toleration})
	}
}
