package attackpaths

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// podChanges takes away what pods mount, and what else their templates give them, and moves pods.
type podChanges struct {
	// of are the changes of the pods of an object.
	of        map[verdict.Object][]changeKey
	templates map[*inventory.Template]*inventory.Template
	// without are the pods that no longer mount a secret, or no longer name it at all if that is true, and moved the
	// nodes of pods that were moved.
	without map[inventory.Name]map[string]bool
	moved   map[inventory.Name]string
	// unmounted are the secrets that pods on a node no longer mount, and left are the nodes from which pods were moved.
	unmounted map[string]map[inventory.Name]bool
	left      map[string]bool
}

func (o *objects) changePods(c *Cluster, of map[verdict.Object][]changeKey) {
	m := podChanges{
		of: of, templates: map[*inventory.Template]*inventory.Template{},
		without: map[inventory.Name]map[string]bool{}, moved: map[inventory.Name]string{},
		unmounted: map[string]map[inventory.Name]bool{}, left: map[string]bool{},
	}
	m.labelNodes(o)
	all := o.pods
	o.pods = make([]*inventory.Pod, 0, len(all))
	for _, p := range all {
		object := templateObject(p)
		changes := of[object]
		if changes == nil && object.Kind == "Job" {
			changes = of[templateOf(p).object]
		}
		if changes != nil {
			p = m.pod(p, changes)
		}
		if p != nil {
			o.pods = append(o.pods, p)
		}
	}
	if len(m.moved) > 0 {
		o.movedTo = m.moved
	}
	o.secretsOn = m.secretsOn(c, o.secretsOn)
}

// labelNodes gives nodes the labels that the pods which are kept to them select, and gives the nodes of a pool its taint.
func (m *podChanges) labelNodes(o *objects) {
	labels, taints := map[string]map[string]string{}, map[string][]corev1.Taint{}
	for _, p := range o.pods {
		if hasKind(m.of[templateObject(p)], keepPods) {
			for _, node := range keptNodes(o.alike()[alikeOf(p)]) {
				labels[node] = withLabels(labels[node], map[string]string{podsLabel + labelOf(p): ""})
			}
		}
	}
	for _, changes := range m.of {
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

func hasKind(changes []changeKey, kind ChangeKind) bool {
	return slices.ContainsFunc(changes, func(c changeKey) bool { return c.kind == kind })
}

// pod is a pod after changes; nil if it is deleted. Pods that share a template still do.
func (m *podChanges) pod(p *inventory.Pod, changes []changeKey) *inventory.Pod {
	if hasKind(changes, removePods) {
		for i := range p.Fields {
			m.note(p, p.Fields[i].Secret, true)
		}
		return nil
	}
	template := m.templates[p.Template]
	if template == nil || p.Workload == (inventory.Workload{}) { // pods without workload may share templates
		changed := *p.Template
		changed.Secrets = slices.Clone(p.Secrets)
		for _, change := range changes {
			take(&changed, change)
		}
		template = &changed
		m.templates[p.Template] = template
	}
	changed := *p
	changed.Template = template
	for _, change := range changes {
		switch change.kind {
		case takeMention:
			m.note(p, change.secret, true)
		case RemoveMount:
			if slices.Contains(p.Secrets, change.secret) {
				m.note(p, change.secret, false)
			}
		case keepPods:
			label := podsLabel + labelOf(p)
			changed.Placement = p.Placement.In(map[string]string{label: ""}, corev1.Taint{Key: label, Effect: corev1.TaintEffectNoSchedule})
		case placePods:
			changed.Placement = p.Placement.In(change.placing.Label, change.placing.Taint)
			if node, ok := change.placing.bound[p.Name]; ok && node != p.Node {
				changed.Node, m.moved[p.Name], m.left[p.Node] = node, node, true
			}
		}
	}
	return &changed
}

// take takes something from a template.
func take(t *inventory.Template, change changeKey) {
	switch {
	case change.kind == takeHost:
		*t = t.WithoutHost()
	case change.kind == otherAccount:
		t.ServiceAccount = defaultAccount
	case change.kind == RemoveMount && change.secret == "":
		t.Audiences = nil
	case change.kind == RemoveMount || change.kind == takeMention:
		t.Secrets = slices.DeleteFunc(t.Secrets, func(s string) bool { return s == change.secret })
	}
}

// note notes that a pod no longer mounts a secret, or no longer names it at all.
func (m *podChanges) note(p *inventory.Pod, secret string, atAll bool) {
	if m.without[p.Name] == nil {
		m.without[p.Name] = map[string]bool{}
	}
	m.without[p.Name][secret] = m.without[p.Name][secret] || atAll
	if m.unmounted[p.Node] == nil {
		m.unmounted[p.Node] = map[inventory.Name]bool{}
	}
	m.unmounted[p.Node][inventory.Name{Namespace: p.Namespace, Name: secret}] = true
}

// secretsOn lists the secrets that nodes read after the changes.
func (m *podChanges) secretsOn(c *Cluster, before func(node string) []verdict.Object) func(node string) []verdict.Object {
	gone, come := map[string]map[verdict.Object]bool{}, map[string][]verdict.Object{}
	nodes := maps.Clone(m.left)
	for node := range m.unmounted {
		nodes[node] = true
	}
	for node := range nodes {
		gone[node] = map[verdict.Object]bool{}
		for _, secret := range before(node) {
			if !m.left[node] && !m.unmounted[node][inventory.Name{Namespace: secret.Namespace, Name: secret.Name}] {
				continue
			}
			gone[node][secret] = true
			for _, path := range c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name) {
				switch to, reads := m.after(node, secret, path); {
				case reads && to == node:
					delete(gone[node], secret)
				case reads:
					come[to] = append(come[to], secret)
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

// after is the node that reads a secret by a path after the changes; false if none does.
func (m *podChanges) after(node string, secret verdict.Object, path verdict.Path) (after string, reads bool) {
	if path[0].To.Kind != Pod {
		return node, true
	}
	pod := inventory.Name{Namespace: path[0].To.Namespace, Name: path[0].To.Name}
	if atAll, without := m.without[pod][secret.Name]; without && (atAll || isMount(path[0].Field)) {
		return "", false
	}
	if to := m.moved[pod]; to != "" {
		return to, true
	}
	return node, true
}

// isMount reports whether the containers of a pod see what a field of it refers to.
func isMount(field string) bool {
	return strings.HasSuffix(field, ".secret") || strings.HasSuffix(field, ".projected") ||
		strings.HasSuffix(field, ".env") || strings.HasSuffix(field, ".envFrom")
}
