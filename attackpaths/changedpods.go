package attackpaths

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changedPod is a pod that changes are about. After is what it is then; nil if it is deleted.
type changedPod struct {
	changes []changeKey
	after   *inventory.Pod
}

// changePods takes away what pods mount, and what else their templates give them, and moves pods. Of has the changes of the pods
// of an object. Pods that share a template still do.
func (o *objects) changePods(c *Cluster, of map[verdict.Object][]changeKey) {
	o.labelNodes(of)
	changed, templates := map[inventory.Name]changedPod{}, map[*inventory.Template]*inventory.Template{}
	onNode := map[string][]changeKey{}
	all := o.pods
	o.pods = make([]*inventory.Pod, 0, len(all))
	for _, p := range all {
		object := templateObject(p)
		changes := of[object]
		if changes == nil && object.Kind == "Job" {
			changes = of[templateOf(p).object]
		}
		if changes != nil {
			to := changedPod{changes: changes}
			if !hasKind(changes, removePods) {
				to.after = podAfter(p, changes, templates)
			}
			changed[p.Name] = to
			for _, change := range changes {
				if change.mayEndReads() && !slices.Contains(onNode[p.Node], change) {
					onNode[p.Node] = append(onNode[p.Node], change)
				}
			}
			p = to.after
		}
		if p != nil {
			o.pods = append(o.pods, p)
		}
	}
	o.secretsOn = secretsAfter(c, changed, onNode, o.secretsOn)
}

// labelNodes gives nodes the labels that the pods which are kept to them select, and gives the nodes of a pool its taint.
func (o *objects) labelNodes(of map[verdict.Object][]changeKey) {
	labels, taints := map[string]map[string]string{}, map[string][]corev1.Taint{}
	for _, p := range o.pods {
		if hasKind(of[templateObject(p)], keepPods) {
			for _, node := range keptNodes(o.alike()[alikeOf(p)]) {
				labels[node] = withLabels(labels[node], map[string]string{podsLabel + labelOf(p): ""})
			}
		}
	}
	for _, changes := range of {
		if pool := changes[0].placing; pool != nil {
			for _, node := range pool.Nodes {
				labels[node], taints[node] = pool.Label, []corev1.Taint{pool.Taint}
			}
		}
	}
	if len(labels) == 0 {
		return
	}
	o.nodes = slices.Clone(o.nodes)
	for i := range o.nodes {
		n := &o.nodes[i]
		n.Labels = withLabels(n.Labels, labels[n.Name])
		n.Taints = slices.Concat(n.Taints, taints[n.Name])
	}
}

func hasKind(changes []changeKey, kind changeKind) bool {
	return slices.ContainsFunc(changes, func(c changeKey) bool { return c.kind == kind })
}

// podAfter is a pod after changes. Templates has those that were changed.
func podAfter(p *inventory.Pod, changes []changeKey, templates map[*inventory.Template]*inventory.Template) *inventory.Pod {
	after := *p
	after.Template = templates[p.Template]
	if after.Template == nil || p.Workload == (inventory.Workload{}) { // pods without workload may share templates
		t := *p.Template
		after.Template, templates[p.Template] = &t, &t
		for _, change := range changes {
			switch {
			case change.kind == takeHost:
				t = t.WithoutHost()
			case change.kind == otherAccount:
				t.ServiceAccount = defaultAccount
			case change.kind == removeMount && change.secret == "":
				t.Audiences = nil
			case change.kind == removeMount || change.kind == takeMention:
				t.Secrets = slices.DeleteFunc(slices.Clone(t.Secrets), func(s string) bool { return s == change.secret })
			}
		}
	}
	for _, change := range changes {
		switch change.kind {
		case keepPods:
			label := podsLabel + labelOf(p)
			after.Placement = p.Placement.In(map[string]string{label: ""}, corev1.Taint{Key: label, Effect: corev1.TaintEffectNoSchedule})
		case placePods:
			after.Placement = p.Placement.In(change.placing.Label, change.placing.Taint)
			if node, ok := change.placing.bound[p.Name]; ok {
				after.Node = node
			}
		}
	}
	return &after
}

// mayEndReads reports whether nodes may no longer read a secret after a change of pods: the one that it names, or any.
func (k changeKey) mayEndReads() bool {
	return k.kind == placePods || k.kind == removePods || k.secret != ""
}

// secretsAfter lists the secrets that nodes read after changes of pods. OnNode are the changes of the pods on
// each node because of which it may read others.
func secretsAfter(
	c *Cluster, changed map[inventory.Name]changedPod, onNode map[string][]changeKey, before func(node string) []verdict.Object,
) func(node string) []verdict.Object {
	gone, come := map[string]map[verdict.Object]bool{}, map[string][]verdict.Object{}
	for node, changes := range onNode {
		gone[node] = map[verdict.Object]bool{}
		for _, secret := range before(node) {
			if !slices.ContainsFunc(changes, func(c changeKey) bool { return c.secret == "" || c.secret == secret.Name }) {
				continue
			}
			gone[node][secret] = true
			for _, path := range c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name) {
				pod, ok := changed[inventory.Name{Namespace: path[0].To.Namespace, Name: path[0].To.Name}]
				switch {
				case path[0].To.Kind != Pod || !ok || pod.reads(secret.Name, path[0].Field) && pod.after.Node == node:
					gone[node][secret] = false
				case pod.reads(secret.Name, path[0].Field):
					come[pod.after.Node] = append(come[pod.after.Node], secret)
				}
			}
		}
	}
	return func(node string) []verdict.Object {
		all := before(node)
		if len(gone[node])+len(come[node]) == 0 {
			return all
		}
		all = slices.DeleteFunc(slices.Clone(all), func(s verdict.Object) bool { return gone[node][s] })
		all = append(all, come[node]...)
		slices.SortFunc(all, verdict.Object.Compare)
		return slices.Compact(all)
	}
}

// reads reports whether the node of a pod still reads a secret to which a field led before.
func (p *changedPod) reads(secret, field string) bool {
	isMount := func(kind string) bool { return strings.HasSuffix(field, kind) }
	mounted := slices.ContainsFunc([]string{".secret", ".projected", ".env", ".envFrom"}, isMount)
	return p.after != nil && !slices.ContainsFunc(p.changes, func(c changeKey) bool {
		return c.secret == secret && (c.kind == takeMention || c.kind == removeMount && mounted)
	})
}
