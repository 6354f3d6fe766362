package attackpaths

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// mounts takes away what pods mount, and what else their templates give them.
type mounts struct {
	// gone are the changes of the pods of an object.
	gone      map[verdict.Object][]changeKey
	templates map[*inventory.Template]*inventory.Template
	// podsWithout are the pods that no longer mount a secret, or no longer name it at all if that is true, and nodes
	// what these are on and which secrets they no longer mount.
	podsWithout map[inventory.Name]map[string]bool
	nodes       map[string]map[inventory.Name]bool
}

func (m *mounts) apply(c *Cluster, o *objects) {
	m.podsWithout, m.nodes = map[inventory.Name]map[string]bool{}, map[string]map[inventory.Name]bool{}
	m.labelNodes(o)
	all := o.pods
	o.pods = make([]*inventory.Pod, 0, len(all))
	for _, p := range all {
		gone := m.gone[templateObject(p)]
		if object := templateOf(p).object; gone == nil && object.Kind == "CronJob" {
			gone = m.gone[object]
		}
		if gone != nil {
			p = m.pod(p, gone)
		}
		if p != nil {
			o.pods = append(o.pods, p)
		}
	}
	before := o.secretsOn
	o.secretsOn = func(node string) []verdict.Object {
		all, gone := before(node), m.nodes[node]
		if len(gone) == 0 {
			return all
		}
		return slices.DeleteFunc(slices.Clone(all), func(s verdict.Object) bool {
			return gone[inventory.Name{Namespace: s.Namespace, Name: s.Name}] && !m.stillReads(c, node, s)
		})
	}
}

// labelNodes gives the nodes to which workloads are kept the labels that their pods select.
func (m *mounts) labelNodes(o *objects) {
	labels := map[string][]string{}
	for _, p := range o.pods {
		if hasKind(m.gone[templateObject(p)], keepPods) {
			for _, node := range keptNodes(o.alike()[alikeOf(p)]) {
				labels[node] = append(labels[node], podsLabel+labelOf(p))
			}
		}
	}
	if len(labels) == 0 {
		return
	}
	o.nodes = slices.Clone(o.nodes)
	for i := range o.nodes {
		n := &o.nodes[i]
		all := map[string]string{}
		for k, v := range n.Labels {
			all[k] = v
		}
		for _, label := range labels[n.Name] {
			all[label] = ""
		}
		n.Labels = all
	}
}

func hasKind(changes []changeKey, kind ChangeKind) bool {
	return slices.ContainsFunc(changes, func(c changeKey) bool { return c.kind == kind })
}

// pod is a pod after changes; nil if it is deleted. Pods that share a template still do.
func (m *mounts) pod(p *inventory.Pod, gone []changeKey) *inventory.Pod {
	if hasKind(gone, removePods) {
		for i := range p.Fields {
			m.note(p, changeKey{kind: takeMention, secret: p.Fields[i].Secret})
		}
		return nil
	}
	template := m.templates[p.Template]
	if template == nil || p.Workload == (inventory.Workload{}) { // pods without workload may share templates
		changed := *p.Template
		changed.Secrets = slices.Clone(p.Secrets)
		for _, change := range gone {
			take(&changed, change)
		}
		template = &changed
		m.templates[p.Template] = template
	}
	for _, change := range gone {
		if change.kind == takeMention || change.kind == RemoveMount && slices.Contains(p.Secrets, change.secret) {
			m.note(p, change)
		}
	}
	changed := *p
	changed.Template = template
	if hasKind(gone, keepPods) {
		label := podsLabel + labelOf(p)
		changed.Placement = p.Placement.In(map[string]string{label: ""}, corev1.Taint{Key: label, Effect: corev1.TaintEffectNoSchedule})
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

func (m *mounts) note(p *inventory.Pod, change changeKey) {
	if m.podsWithout[p.Name] == nil {
		m.podsWithout[p.Name] = map[string]bool{}
	}
	m.podsWithout[p.Name][change.secret] = m.podsWithout[p.Name][change.secret] || change.kind == takeMention
	if m.nodes[p.Node] == nil {
		m.nodes[p.Node] = map[inventory.Name]bool{}
	}
	m.nodes[p.Node][inventory.Name{Namespace: p.Namespace, Name: change.secret}] = true
}

// stillReads reports whether something else on a node refers to a secret.
func (m *mounts) stillReads(c *Cluster, node string, secret verdict.Object) bool {
	return slices.ContainsFunc(c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name), func(p verdict.Path) bool {
		pod := inventory.Name{Namespace: p[0].To.Namespace, Name: p[0].To.Name}
		whole, without := m.podsWithout[pod][secret.Name]
		return p[0].To.Kind != Pod || !without || !whole && !isMount(p[0].Field)
	})
}

// isMount reports whether the containers of a pod see what a field of it refers to.
func isMount(field string) bool {
	return strings.HasSuffix(field, ".secret") || strings.HasSuffix(field, ".projected") ||
		strings.HasSuffix(field, ".env") || strings.HasSuffix(field, ".envFrom")
}
