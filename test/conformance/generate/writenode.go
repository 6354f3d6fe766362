package generate

import (
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// labelKeys are keys of labels on nodes, with the outcome of a node changing
// one: the kubelet's own, free ones, and those that it may not touch.
func labelKeys() map[string]Outcome {
	keys := make(map[string]Outcome)
	for _, key := range []string{
		"app", "team.example.com/x", "", "/x", "kubernetes.io", "k8s.io", "node-restriction.kubernetes.io", "cluster.x-k8s.io/y",
		"xkubernetes.io/y", "xk8s.io/y", "a/b.kubernetes.io/c", "Kubernetes.io/x", "KUBERNETES.IO/x", "k8s.io.example/x",
		"kubernetes.io./x",
		"node-restriction.kubernetes.io.node.kubernetes.io/x", "kubelet.kubernetes.io/x", "a.kubelet.kubernetes.io/x",
		"node.kubernetes.io/x", "a.node.kubernetes.io/x", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "node.kubernetes.io/windows-build", "node-restriction.k8s.io.example/x",
	} {
		keys[key] = Allowed
	}
	for _, key := range []string{
		"node-restriction.kubernetes.io/x", "a.node-restriction.kubernetes.io/x", "a.b.node-restriction.kubernetes.io/x/y",
		"node.kubernetes.io.node-restriction.kubernetes.io/x", "xnode-restriction.kubernetes.io/x", "node-restriction.kubernetes.io/",
		"kubernetes.io/x", "kubernetes.io/", "a.kubernetes.io/x", ".kubernetes.io/x", "k8s.io/x", "a.k8s.io/x",
		"node.k8s.io/x", "kubelet.k8s.io/x",
		"node-role.kubernetes.io/control-plane", "kubernetes.io/os/x", "xkubelet.kubernetes.io/x", "topology.kubernetes.io/rack",
		"beta.kubernetes.io/x", "kubernetes.io/Hostname", "failure-domain.kubernetes.io/zone", "kubelet.kubernetes.io.k8s.io/x",
	} {
		keys[key] = Refused
	}
	return keys
}

// nodeLabels draws labels that a node has.
func nodeLabels(r *rand.Rand) map[string]string {
	labels := map[string]string{"kubernetes.io/hostname": "h", "node-restriction.kubernetes.io/tier": "t"}
	for range r.IntN(3) {
		labels["label-"+strconv.Itoa(r.IntN(5))] = "v"
	}
	return labels
}

// labelMutations change one label of a node: add, change or remove it. On creation
// all that there is is new.
func labelMutations(onUpdate bool) []mutation {
	var mutations []mutation
	for key, outcome := range labelKeys() {
		mutations = append(mutations, mutation{"label " + strconv.Quote(key), outcome, func(d *draft) {
			setLabel(&d.asNode.ObjectMeta, key, pick(d.r, []string{"", "x"}))
			if !onUpdate {
				return
			}
			switch d.r.IntN(3) {
			case 0:
				delete(d.oldNode.Labels, key)
			case 1:
				setLabel(&d.oldNode.ObjectMeta, key, "y")
			default:
				delete(d.asNode.Labels, key)
				setLabel(&d.oldNode.ObjectMeta, key, pick(d.r, []string{"", "x"}))
			}
		}})
	}
	return sorted(mutations)
}

func (d *draft) drawNode() {
	d.asNode = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.node}}
	if stored := d.index.nodes[d.node]; stored != nil {
		d.asNode = stored.DeepCopy()
	}
	d.asNode.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	d.asNode.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o"}}
}

// sourceOf is where a node keeps its config source.
func sourceOf(node *corev1.Node) **corev1.NodeConfigSource {
	return &node.Spec.ConfigSource //lint:ignore SA1019 API servers still store it, and nodes must not set it
}

func configSource() *corev1.NodeConfigSource {
	return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "c", UID: "u"}}
}

// nodeCreate is a node that registers itself. It may come with taints and
// owners.
func nodeCreate() kind {
	return kind{
		name: "nodes create", weight: 15, outcome: Allowed,
		draw: func(d *draft) {
			d.drawNode()
			delete(d.asNode.Labels, "node-restriction.kubernetes.io/tier")
			d.about("CREATE", "", "nodes", pick(d.r, []string{"", "", "status", "proxy"}), "", d.node)
		},
		mutations: append([]mutation{
			{"another node", Refused, func(d *draft) { d.Name = d.otherNode() }},
			{"another name in the object", Allowed, func(d *draft) { d.asNode.Name = d.otherNode() }},
			{"config source", Refused, func(d *draft) { *sourceOf(d.asNode) = configSource() }},
			{"empty config source", Refused, func(d *draft) { *sourceOf(d.asNode) = &corev1.NodeConfigSource{} }},
			{"no labels", Allowed, func(d *draft) { d.asNode.Labels = nil }},
		}, labelMutations(false)...),
		finish: func(d *draft) { d.Object = d.asNode },
	}
}

// nodeUpdate is an update of a node, through any subresource.
func nodeUpdate() kind {
	return kind{
		name: "nodes update", weight: 20, outcome: Allowed,
		draw: func(d *draft) {
			d.drawNode()
			d.oldNode = d.asNode.DeepCopy()
			d.asNode.ResourceVersion = "9"
			d.asNode.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			d.about("UPDATE", "", "nodes", pick(d.r, []string{"", "status", "status", "proxy", "configz"}), "", d.node)
		},
		mutations: append(append(specMutations(), ownerReferenceMutations()...), labelMutations(true)...),
		finish:    func(d *draft) { d.Object, d.OldObject = d.asNode, d.oldNode },
	}
}

// specMutations change the taints and the config source of a node.
func specMutations() []mutation {
	another := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}
	taint := func(change func(*corev1.Taint)) func(*draft) {
		return func(d *draft) {
			for i := range d.asNode.Spec.Taints {
				change(&d.asNode.Spec.Taints[i])
			}
		}
	}
	return []mutation{
		{"another node", Refused, func(d *draft) { d.Name = d.otherNode() }},
		{"taint removed", Refused, func(d *draft) { d.asNode.Spec.Taints = pick(d.r, [][]corev1.Taint{nil, {}}) }},
		{"taint added", Refused, func(d *draft) { d.asNode.Spec.Taints = append(d.asNode.Spec.Taints, another) }},
		{"taint of another value", Refused, taint(func(x *corev1.Taint) { x.Value = "y" })},
		{"taint of another effect", Refused, taint(func(x *corev1.Taint) { x.Effect = corev1.TaintEffectNoExecute })},
		{"taint of another time", Refused, taint(func(x *corev1.Taint) { x.TimeAdded = new(metav1.Unix(1700000000, 0)) })},
		{"taints reordered", Refused, func(d *draft) {
			d.oldNode.Spec.Taints = append(d.oldNode.Spec.Taints, another)
			d.asNode.Spec.Taints = append([]corev1.Taint{another}, d.asNode.Spec.Taints...)
		}},
		{"empty taints instead of none", Allowed, func(d *draft) { d.oldNode.Spec.Taints, d.asNode.Spec.Taints = nil, []corev1.Taint{} }},
		{"config source set", Refused, func(d *draft) { *sourceOf(d.asNode) = configSource() }},
		{"empty config source set", Refused, func(d *draft) { *sourceOf(d.asNode) = &corev1.NodeConfigSource{} }},
		{"config source changed", Refused, func(d *draft) {
			*sourceOf(d.oldNode), *sourceOf(d.asNode) = configSource(), configSource()
			(*sourceOf(d.asNode)).ConfigMap.Name = "d"
		}},
		{"config source kept", Allowed, func(d *draft) {
			*sourceOf(d.oldNode), *sourceOf(d.asNode) = configSource(), configSource()
		}},
		{"config source removed", Allowed, func(d *draft) { *sourceOf(d.oldNode) = configSource() }},
		{"provider and pod range set", Allowed, func(d *draft) { d.asNode.Spec.ProviderID, d.asNode.Spec.PodCIDR = "p", "10.0.0.0/24" }},
		{"made unschedulable", Allowed, func(d *draft) { d.asNode.Spec.Unschedulable = true }},
	}
}

// ownerReferenceMutations change the owners of a node.
func ownerReferenceMutations() []mutation {
	owner := func(change func(*metav1.OwnerReference)) func(*draft) {
		return func(d *draft) {
			for i := range d.asNode.OwnerReferences {
				change(&d.asNode.OwnerReferences[i])
			}
		}
	}
	return []mutation{
		{"owner added", Refused, func(d *draft) {
			d.asNode.OwnerReferences = append(d.asNode.OwnerReferences,
				metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"})
		}},
		{"owner removed", Refused, func(d *draft) { d.asNode.OwnerReferences = pick(d.r, [][]metav1.OwnerReference{nil, {}}) }},
		{"owner with another uid", Refused, owner(func(o *metav1.OwnerReference) { o.UID += "0" })},
		{"owner of another kind", Refused, owner(func(o *metav1.OwnerReference) { o.Kind = "Node" })},
		{"owner as controller", Refused, owner(func(o *metav1.OwnerReference) { o.Controller = new(false) })},
		{"empty owners instead of none", Allowed, func(d *draft) {
			d.oldNode.OwnerReferences, d.asNode.OwnerReferences = nil, []metav1.OwnerReference{}
		}},
		{"finalizer and annotation added", Allowed, func(d *draft) {
			d.asNode.Finalizers, d.asNode.Annotations = []string{"example.com/f"}, map[string]string{"a": "b"}
		}},
		{"another uid", Allowed, func(d *draft) { d.asNode.UID = types.UID("x") }},
	}
}

func nodeDelete() kind {
	return kind{
		name: "nodes delete", weight: 3, outcome: Allowed,
		draw: func(d *draft) {
			d.drawNode()
			d.about("DELETE", "", "nodes", pick(d.r, []string{"", "status"}), "", d.node)
		},
		mutations: []mutation{
			{"another node", Refused, func(d *draft) { d.Name = d.otherNode() }},
			{"another name in the object", Allowed, func(d *draft) { d.asNode.Name = d.otherNode() }},
		},
		finish: func(d *draft) { d.OldObject = d.asNode },
	}
}
