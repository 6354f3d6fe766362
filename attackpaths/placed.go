package attackpaths

import (
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// placed are the objects after the pods of a pool were placed, and its nodes labeled and tainted.
func (o *objects) placed(c *Cluster, placing *Placing) *objects {
	after := *o
	after.nodes = slices.Clone(o.nodes)
	for i := range after.nodes {
		if n := &after.nodes[i]; slices.Contains(placing.Nodes, n.Name) {
			n.Labels = maps.Clone(n.Labels)
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			maps.Copy(n.Labels, placing.Label)
			n.Taints = append(slices.Clip(n.Taints), placing.Taint)
		}
	}
	templates := map[verdict.Object]bool{}
	for _, w := range placing.Workloads {
		templates[w.Object] = true
	}
	moved := map[inventory.Name]string{}
	after.pods = slices.Clone(o.pods)
	for i, p := range o.pods {
		if t := templateOf(p); t.spec == "" || !templates[t.object] {
			continue
		}
		pod := *p
		pod.Placement = p.Placement.In(placing.Label, placing.Taint)
		if node, ok := placing.bound[p.Name]; ok && node != p.Node {
			pod.Node, moved[p.Name] = node, node
		}
		after.pods[i] = &pod
	}
	after.movedTo = moved
	after.secretsOn = secretsAfter(c, o, moved)
	return &after
}

// secretsAfter are the secrets that nodes read after pods were moved.
func secretsAfter(c *Cluster, o *objects, moved map[inventory.Name]string) func(node string) []verdict.Object {
	gone, come := map[string]map[verdict.Object]bool{}, map[string][]verdict.Object{}
	nodes := map[string]bool{}
	for _, p := range o.pods {
		if moved[p.Name] != "" {
			nodes[p.Node] = true
		}
	}
	for node := range nodes {
		gone[node] = map[verdict.Object]bool{}
		for _, secret := range o.secretsOn(node) {
			stays := false
			for _, path := range c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name) {
				to := movedBy(path, moved)
				stays = stays || to == ""
				if to != "" && !slices.Contains(come[to], secret) {
					come[to] = append(come[to], secret)
				}
			}
			gone[node][secret] = !stays
		}
	}
	return func(node string) []verdict.Object {
		var all []verdict.Object
		for _, secret := range o.secretsOn(node) {
			if !gone[node][secret] {
				all = append(all, secret)
			}
		}
		all = append(all, come[node]...)
		slices.SortFunc(all, verdict.Object.Compare)
		return slices.Compact(all)
	}
}

// movedBy is the node to which the pod of a path was moved; empty if it was not.
func movedBy(path verdict.Path, moved map[inventory.Name]string) string {
	for _, e := range path {
		if e.To.Kind == Pod {
			return moved[inventory.Name{Namespace: e.To.Namespace, Name: e.To.Name}]
		}
	}
	return ""
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
	done := map[verdict.Object]bool{}
	for _, pod := range p.pods { // also those that no node has yet: the scheduler would bind them as they are
		w := p.of[placedObject(pod)]
		if w == nil || w.Why != "" {
			continue
		}
		t := templateOf(pod)
		if !done[w.Object] {
			done[w.Object] = true
			t.placeIn(pod, p.placing)
		}
		placed := len(t.changes)
		t.replacePods(pod)
		for _, c := range t.changes[placed:] {
			if done[c.Object] {
				t.changes = t.changes[:placed]
			}
			done[c.Object] = true
		}
		r.Changes = append(r.Changes, t.changes...)
	}
	r.Disrupts = disruption(r.Changes)
	return r
}

// placeIn selects the nodes of the pool, and tolerates their taint.
func (t *template) placeIn(pod *inventory.Pod, placing *Placing) {
	if pod.Placement.Selects() {
		t.do(verdict.Add, t.spec+"/nodeSelector/"+escaped(poolLabel), poolValue)
	} else {
		t.do(verdict.Add, t.spec+"/nodeSelector", placing.Label)
	}
	toleration := inventory.TolerationOf(placing.Taint)
	if pod.Placement.Tolerates() {
		t.do(verdict.Add, t.spec+"/tolerations/-", toleration)
	} else {
		t.do(verdict.Add, t.spec+"/tolerations", []any{toleration})
	}
}
