package attackpaths

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changeKind is what a change takes away. Those that a [Change] may have come first, in their order.
type changeKind uint8

const (
	// takeSubject takes a subject from a binding, or all subjects.
	takeSubject changeKind = iota
	// removeRule removes a rule of a role, and removeMount what the containers of pods see of a secret, or their token.
	removeRule
	removeMount
	// setLevel sets the Pod Security level of a namespace.
	setLevel
	// takeRight takes a right from the rules of a role.
	takeRight
	// takeHost takes rights over the host from pods, and takeMention each mention of a secret.
	takeHost
	takeMention
	// otherAccount gives pods the account default.
	otherAccount
	// keepPods keeps pods to nodes that run pods of their workload, and placePods to the nodes of a pool.
	keepPods
	placePods
	// removePods removes pods without a template, and removeObject a secret, claim or volume.
	removePods
	removeObject
)

// publicKinds are the kinds of a [Change].
var publicKinds = [...]ChangeKind{
	takeSubject: RemoveBinding, removeRule: RemoveRule, removeMount: RemoveMount, setLevel: RestrictPods,
}

// changeKey identifies a change. Its object is a role, a binding, an object with the template of pods, a namespace, a secret, a
// claim or a volume.
type changeKey struct {
	kind   changeKind
	object verdict.Object
	// rule is the place of a rule in its role or of a subject in its binding, from zero, or allSubjects; zero for others.
	rule   int
	secret string
	// level is what setLevel sets, right what takeRight takes, and placing the pool to which placePods moves pods.
	level   psa.Level
	right   wantedRight
	placing *Placing
}

func (k changeKey) compare(o changeKey) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), k.object.Compare(o.object), cmp.Compare(k.rule, o.rule),
		strings.Compare(k.secret, o.secret))
}

// mountIn is the change that no longer mounts a secret, or a token for the empty name, into a pod.
func mountIn(p *inventory.Pod, secret string) changeKey {
	return changeKey{kind: removeMount, object: templateObject(p), secret: secret}
}

// templateObject is the object whose pod template a pod is made from, or the pod.
func templateObject(p *inventory.Pod) verdict.Object {
	for i := range workloads {
		if w := &workloads[i]; requestKinds[w.create].resource == p.Workload.Resource && w.create != createCronJobs {
			return verdict.Object{Kind: w.kind, Namespace: p.Namespace, Name: p.Workload.Name}
		}
	}
	return verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name}
}

// without are the objects after changes. Roles, their rules and bindings keep their places.
func (o *objects) without(c *Cluster, changes []changeKey) *objects {
	left := *o
	ofPods := map[verdict.Object][]changeKey{}
	for _, change := range changes {
		switch change.kind {
		case takeSubject, removeRule, takeRight: // all of them together, below
		case setLevel:
			left.setLevel(change.object.Name, change.level)
		case removeObject:
			left.remove(change.object)
		default:
			ofPods[change.object] = append(ofPods[change.object], change)
		}
	}
	left.takeRights(changes)
	left.takeSubjects(changes)
	if len(ofPods) > 0 {
		left.changePods(c, ofPods)
	}
	return &left
}

// remove removes a secret, claim or volume.
func (o *objects) remove(object verdict.Object) {
	removed := map[verdict.Object]bool{object: true}
	maps.Copy(removed, o.removed)
	o.removed = removed
	o.secrets = slices.DeleteFunc(slices.Clone(o.secrets), func(s inventory.Secret) bool {
		return object == verdict.Object{Kind: Secret, Namespace: s.Namespace, Name: s.Name.Name}
	})
}

// setLevel sets the Pod Security level of a namespace, which perhaps only other objects name.
func (o *objects) setLevel(namespace string, level psa.Level) {
	o.namespaces = slices.Clone(o.namespaces)
	i := slices.IndexFunc(o.namespaces, func(n inventory.Namespace) bool { return n.Name == namespace })
	if i < 0 {
		i = len(o.namespaces)
		o.namespaces = append(o.namespaces, inventory.Namespace{Name: namespace})
	}
	n := &o.namespaces[i]
	n.Labels = withLabels(n.Labels, map[string]string{psa.EnforceLevelLabel: string(level)})
}

func withLabels(labels, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	maps.Copy(all, more)
	return all
}

// places are where the subjects are that are taken from a binding.
type places []int

// allSubjects stands for the place of each subject of a binding.
const allSubjects = -1

func (p places) has(place int) bool {
	return slices.Contains(p, place) || slices.Contains(p, allSubjects)
}

// takenSubjects lists the subjects that changes take from bindings.
func takenSubjects(changes []changeKey) map[verdict.Object]places {
	taken := map[verdict.Object]places{}
	for _, c := range changes {
		if c.kind == takeSubject {
			taken[c.object] = append(taken[c.object], c.rule)
		}
	}
	return taken
}

func (o *objects) takeSubjects(changes []changeKey) {
	taken := takenSubjects(changes)
	if len(taken) == 0 {
		return
	}
	o.bindings = slices.Clone(o.bindings)
	for i := range o.bindings {
		bound := &o.bindings[i]
		gone := taken[verdict.Object(bound.Binding)]
		if gone == nil {
			continue
		}
		var kept []rbacv1.Subject
		for j, subject := range bound.Subjects {
			if !gone.has(j) {
				kept = append(kept, subject)
			}
		}
		bound.Subjects = kept
	}
}

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
				mayEndReads := change.kind == placePods || change.kind == removePods || change.secret != ""
				if mayEndReads && !slices.Contains(onNode[p.Node], change) {
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
				isTaken := func(s string) bool { return s == change.secret }
				t.Secrets = slices.DeleteFunc(slices.Clone(t.Secrets), isTaken)
				t.VolumeSecrets = slices.DeleteFunc(slices.Clone(t.VolumeSecrets), isTaken)
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

// secretsAfter lists the secrets that nodes read after changes of pods. OnNode are the changes of the pods on
// each node because of which it may read others.
func secretsAfter(
	c *Cluster, changed map[inventory.Name]changedPod, onNode map[string][]changeKey, before func(node string) []verdict.Object,
) func(node string) []verdict.Object {
	after := map[string][]verdict.Object{} // of nodes with changes, and what others get
	for node, changes := range onNode {
		for _, secret := range before(node) {
			if !slices.ContainsFunc(changes, func(c changeKey) bool { return c.secret == "" || c.secret == secret.Name }) {
				after[node] = append(after[node], secret)
				continue
			}
			for _, path := range c.Relations.Paths(node, graph.Secret, secret.Namespace, secret.Name) {
				pod, ok := changed[inventory.Name{Namespace: path[0].To.Namespace, Name: path[0].To.Name}]
				switch {
				case path[0].To.Kind != Pod || !ok:
					after[node] = append(after[node], secret)
				case pod.reads(secret.Name, path[0].Field):
					after[pod.after.Node] = append(after[pod.after.Node], secret)
				}
			}
		}
	}
	return func(node string) []verdict.Object {
		if onNode[node] == nil && after[node] == nil {
			return before(node)
		}
		all := slices.Clone(after[node])
		if onNode[node] == nil {
			all = append(all, before(node)...)
		}
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
