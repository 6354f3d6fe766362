package attackpaths

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changeKey identifies a change. Rule is the place of a rule in its role, from zero, and zero for
// others.
type changeKey struct {
	kind   ChangeKind
	object verdict.Object
	rule   int
	secret string
}

func objectOf(r rbac.Ref) verdict.Object {
	return verdict.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// mountIn is the change that no longer mounts a secret, or a token for the empty name, into a pod.
func mountIn(p *inventory.Pod, secret string) changeKey {
	return changeKey{kind: RemoveMount, object: templateObject(p), secret: secret}
}

// templateObject is the object whose pod template a pod is made from, or the pod.
func templateObject(p *inventory.Pod) verdict.Object {
	kind := map[string]string{
		"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet",
		"jobs": "Job", "replicationcontrollers": "ReplicationController",
	}[p.Workload.Resource]
	if kind == "" {
		return verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name}
	}
	return verdict.Object{Kind: kind, Namespace: p.Namespace, Name: p.Workload.Name}
}

// without are the objects after changes. Roles keep their places.
func (o *objects) without(c *Cluster, changes []changeKey) *objects {
	left := *o
	bindings, rules, labeled := map[verdict.Object]bool{}, map[verdict.Object][]int{}, map[string]bool{}
	m := mounts{gone: map[verdict.Object][]string{}, templates: map[*inventory.Template]*inventory.Template{}}
	for _, change := range changes {
		switch change.kind {
		case RemoveBinding:
			bindings[change.object] = true
		case RemoveRule:
			rules[change.object] = append(rules[change.object], change.rule)
		case RemoveMount:
			m.gone[change.object] = append(m.gone[change.object], change.secret)
		case RestrictPods:
			labeled[change.object.Name] = true
		}
	}
	if len(bindings) > 0 {
		left.bindings = slices.DeleteFunc(slices.Clone(o.bindings), func(b rbac.BoundRole) bool { return bindings[objectOf(b.Binding)] })
	}
	if len(rules) > 0 {
		left.removeRules(rules)
	}
	if len(labeled) > 0 {
		left.namespaces = restrictedNamespaces(o.namespaces, labeled)
	}
	if len(m.gone) > 0 {
		m.apply(c, &left)
	}
	return &left
}

func (o *objects) removeRules(rules map[verdict.Object][]int) {
	o.roles, o.places = slices.Clone(o.roles), maps.Clone(o.places)
	if o.places == nil {
		o.places = map[int32][]int{}
	}
	for i := range o.roles {
		gone := rules[objectOf(o.roles[i].Role)]
		if gone == nil {
			continue
		}
		var kept []rbacv1.PolicyRule
		places := []int{}
		for j, rule := range o.roles[i].Rules {
			place := o.placeOf(int32(i), j)
			if !slices.Contains(gone, place) {
				kept, places = append(kept, rule), append(places, place)
			}
		}
		o.roles[i].Rules, o.places[int32(i)] = kept, places
	}
}

// placeOf is the place that a rule of a role had before others were removed.
func (o *objects) placeOf(role int32, rule int) int {
	if places, ok := o.places[role]; ok {
		return places[rule]
	}
	return rule
}

func restrictedNamespaces(namespaces []inventory.Namespace, changed map[string]bool) []inventory.Namespace {
	namespaces = slices.Clone(namespaces)
	for i := range namespaces {
		if n := &namespaces[i]; changed[n.Name] {
			labels := map[string]string{}
			maps.Copy(labels, n.Labels)
			labels[psa.EnforceLevelLabel] = string(psa.LevelRestricted)
			n.Labels = labels
		}
	}
	return namespaces
}

// mounts takes away what pods mount.
type mounts struct {
	// gone are the secrets that are no longer mounted; the empty name is the token.
	gone      map[verdict.Object][]string
	templates map[*inventory.Template]*inventory.Template
	// podsWithout are the pods that no longer mount a secret, and nodes what these are on and
	// which secrets they no longer mount.
	podsWithout map[inventory.Name]map[string]bool
	nodes       map[string]map[inventory.Name]bool
}

func (m *mounts) apply(c *Cluster, o *objects) {
	m.podsWithout, m.nodes = map[inventory.Name]map[string]bool{}, map[string]map[inventory.Name]bool{}
	o.pods = slices.Clone(o.pods)
	for i, p := range o.pods {
		if gone := m.gone[templateObject(p)]; gone != nil {
			o.pods[i] = m.pod(p, gone)
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

// pod is a pod without mounts. Pods that share a template still do.
func (m *mounts) pod(p *inventory.Pod, gone []string) *inventory.Pod {
	template := m.templates[p.Template]
	if template == nil || p.Workload == (inventory.Workload{}) { // pods without workload may share templates
		changed := *p.Template
		if slices.Contains(gone, "") {
			changed.Audiences = nil
		}
		changed.Secrets = slices.DeleteFunc(slices.Clone(p.Secrets), func(s string) bool { return slices.Contains(gone, s) })
		template = &changed
		m.templates[p.Template] = template
	}
	for _, secret := range gone {
		if slices.Contains(p.Secrets, secret) {
			m.note(p, secret)
		}
	}
	changed := *p
	changed.Template = template
	return &changed
}

func (m *mounts) note(p *inventory.Pod, secret string) {
	if m.podsWithout[p.Name] == nil {
		m.podsWithout[p.Name] = map[string]bool{}
	}
	m.podsWithout[p.Name][secret] = true
	if m.nodes[p.Node] == nil {
		m.nodes[p.Node] = map[inventory.Name]bool{}
	}
	m.nodes[p.Node][inventory.Name{Namespace: p.Namespace, Name: secret}] = true
}

// stillReads reports whether something else on a node refers to a secret.
func (m *mounts) stillReads(c *Cluster, node string, secret verdict.Object) bool {
	return slices.ContainsFunc(c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name), func(p verdict.Path) bool {
		pod := inventory.Name{Namespace: p[0].To.Namespace, Name: p[0].To.Name}
		return p[0].To.Kind != Pod || !m.podsWithout[pod][secret.Name] || !isMount(p[0].Field)
	})
}

// isMount reports whether the containers of a pod see what a field of it refers to.
func isMount(field string) bool {
	return strings.HasSuffix(field, ".secret") || strings.HasSuffix(field, ".projected") ||
		strings.HasSuffix(field, ".env") || strings.HasSuffix(field, ".envFrom")
}
