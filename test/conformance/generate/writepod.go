package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// mirrorPod is the creation of a mirror pod.
func mirrorPod() kind {
	return kind{
		name: "pods create", weight: 26, outcome: Allowed, draw: drawMirrorPod,
		mutations: append(append(ownerMutations(), referenceMutations()...), volumeMutations()...),
		finish:    func(d *draft) { d.Object = d.pod },
	}
}

func drawMirrorPod(d *draft) {
	d.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   pick(d.r, d.state.Namespaces),
		Name:        "static-" + d.node,
		Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "6c9d", "kubernetes.io/config.source": "file"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: d.node, UID: d.index.nodeUID(d.node), Controller: new(true),
		}},
	}}
	d.pod.Spec.NodeName = d.node
	d.pod.Spec.Containers = []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}
	d.about("CREATE", "", "pods", "", d.pod.Namespace, pick(d.r, []string{d.pod.Name, ""}))
}

// ownerMutations are the possible mistakes in a mirror pod's annotation, node and
// owner.
func ownerMutations() []mutation {
	owner := func(apply func(*draft, *metav1.OwnerReference)) func(*draft) {
		return func(d *draft) {
			for i := range d.pod.OwnerReferences {
				apply(d, &d.pod.OwnerReferences[i])
			}
		}
	}
	return []mutation{
		{"no mirror annotation", Refused, func(d *draft) { delete(d.pod.Annotations, corev1.MirrorPodAnnotationKey) }},
		{"an empty mirror annotation", Allowed, func(d *draft) { d.pod.Annotations[corev1.MirrorPodAnnotationKey] = "" }},
		{"on another node", Refused, func(d *draft) { d.pod.Spec.NodeName = d.otherNode() }},
		{"on no node", Refused, func(d *draft) { d.pod.Spec.NodeName = "" }},
		{"no owner", Refused, func(d *draft) { d.pod.OwnerReferences = pick(d.r, [][]metav1.OwnerReference{nil, {}}) }},
		{"two owners", Refused, func(d *draft) {
			d.pod.OwnerReferences = append(d.pod.OwnerReferences,
				metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: d.node, UID: "x"})
		}},
		{"owner of another API version", Refused, owner(func(d *draft, o *metav1.OwnerReference) {
			o.APIVersion = pick(d.r, []string{"", "v1beta1", "core/v1", "/v1"})
		})},
		{
			"owner of another kind", Refused,
			owner(func(d *draft, o *metav1.OwnerReference) { o.Kind = pick(d.r, []string{"", "node", "Nodes", "Pod"}) }),
		},
		{"owned by another node", Refused, owner(func(d *draft, o *metav1.OwnerReference) {
			o.Name = d.otherNode()
			o.UID = d.index.nodeUID(o.Name)
		})},
		{
			"owner with another uid", Refused,
			owner(func(d *draft, o *metav1.OwnerReference) { o.UID = pick(d.r, []types.UID{"", "uid-0", o.UID + "0"}) }),
		},
		{
			"owner without controller", Refused,
			owner(func(d *draft, o *metav1.OwnerReference) { o.Controller = pick(d.r, []*bool{nil, new(false)}) }),
		},
		{"owner that blocks deletion", Refused, owner(func(_ *draft, o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(true) })},
		{
			"owner that says not to block deletion", Allowed,
			owner(func(_ *draft, o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(false) }),
		},
		{"another name in the object", Allowed, func(d *draft) { d.pod.Name = pick(d.r, objectNames) }},
	}
}

// podDelete is the deletion of a pod, of which the stored one counts.
func podDelete() kind {
	return kind{
		name: "pods delete", weight: 4, outcome: Allowed,
		draw: func(d *draft) {
			d.pod = d.ownPod().DeepCopy()
			d.about("DELETE", "", "pods", "", d.pod.Namespace, d.pod.Name)
		},
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) {
				d.takePod(d.foreignPod())
				d.pod.Spec.NodeName = d.node
			}},
			{"not known", Refused, func(d *draft) { d.Name = pick(d.r, []string{"gone", "", d.Name + "x"}) }},
			{"an old object that is elsewhere", Allowed, func(d *draft) { d.pod.Spec.NodeName = d.otherNode() }},
		},
		finish: func(d *draft) { d.OldObject = d.pod },
	}
}

// takePod makes the request about another pod.
func (d *draft) takePod(pod *corev1.Pod) {
	d.pod = pod.DeepCopy()
	d.Namespace, d.Name = pod.Namespace, pod.Name
}

func podUpdate() kind {
	return kind{
		name: "pods update", weight: 1, outcome: Refused,
		draw: func(d *draft) {
			d.pod = d.ownPod().DeepCopy()
			d.about("UPDATE", "", "pods", "", d.pod.Namespace, d.pod.Name)
		},
		finish: func(d *draft) { d.Object, d.OldObject = d.pod, d.pod.DeepCopy() },
	}
}

// podEviction is the eviction of a pod, which the request or the object names.
func podEviction() kind {
	return kind{
		name: "pods/eviction create", weight: 5, outcome: Allowed,
		draw: func(d *draft) {
			pod := d.ownPod()
			d.about("CREATE", "", "pods", "eviction", pod.Namespace, pod.Name)
			d.eviction = &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		},
		mutations: []mutation{
			{"named by the object alone", Allowed, func(d *draft) { d.Name = "" }},
			{"named by the request alone", Allowed, func(d *draft) { d.eviction.Name = "" }},
			{"named by neither", Refused, func(d *draft) { d.Name, d.eviction.Name = "", "" }},
			{"the object names another", Allowed, func(d *draft) { d.eviction.Name = pick(d.r, objectNames) }},
			{"another node's", Refused, func(d *draft) {
				d.takePod(d.foreignPod())
				d.eviction.Namespace, d.eviction.Name = d.Namespace, d.Name
			}},
			{"another node's, named by the object alone", Refused, func(d *draft) {
				d.takePod(d.foreignPod())
				d.Name, d.eviction.Name = "", d.Name
			}},
			{"the request names another", Either, func(d *draft) { d.Name = pick(d.r, objectNames) }},
			{"not known", Refused, func(d *draft) { d.Name = "gone" }},
			{"not known, by the object", Refused, func(d *draft) { d.Name, d.eviction.Name = "", "gone" }},
			{"update", Refused, func(d *draft) { d.Operation = "UPDATE" }},
			{"delete", Refused, func(d *draft) { d.Operation = "DELETE" }},
		},
		finish: func(d *draft) {
			d.Object = d.eviction
			if chance(d.r, 30) {
				d.Object = &policyv1beta1.Eviction{ObjectMeta: d.eviction.ObjectMeta}
			}
		},
	}
}

// podStatus is an update of a pod's status, for which the old object counts.
func podStatus() kind {
	return kind{
		name: "pods/status update", weight: 14, outcome: Allowed, draw: drawPodStatus, mutations: statusMutations(),
		finish: func(d *draft) { d.Object, d.OldObject = d.pod, d.oldPod },
	}
}

func drawPodStatus(d *draft) {
	d.oldPod = d.ownPod().DeepCopy()
	d.pod = d.oldPod.DeepCopy()
	d.pod.ResourceVersion = pick(d.r, []string{"", "7", "8"})
	d.pod.Status.Phase = pick(d.r, []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed})
	d.about("UPDATE", "", "pods", "status", d.pod.Namespace, d.pod.Name)
}

func statusMutations() []mutation {
	mutations := []mutation{
		{"create", Refused, func(d *draft) { d.Operation = "CREATE" }},
		{"delete", Refused, func(d *draft) { d.Operation = "DELETE" }},
		{"old pod elsewhere", Refused, func(d *draft) { d.oldPod.Spec.NodeName = pick(d.r, []string{"", d.otherNode()}) }},
		{"new pod elsewhere", Allowed, func(d *draft) { d.pod.Spec.NodeName = pick(d.r, []string{"", d.otherNode()}) }},
		{"no labels instead of none", Allowed, func(d *draft) { d.oldPod.Labels, d.pod.Labels = nil, map[string]string{} }},
		{"label added", Refused, func(d *draft) { setLabel(&d.pod.ObjectMeta, "added", "") }},
		{"label changed", Refused, func(d *draft) {
			setLabel(&d.oldPod.ObjectMeta, "app", "x")
			setLabel(&d.pod.ObjectMeta, "app", "y")
		}},
		{"label removed", Refused, func(d *draft) { setLabel(&d.oldPod.ObjectMeta, "removed", "x") }},
		{"label renamed", Refused, func(d *draft) {
			setLabel(&d.oldPod.ObjectMeta, "before", "x")
			setLabel(&d.pod.ObjectMeta, "after", "x")
		}},
		{"annotation added", Allowed, func(d *draft) { d.pod.Annotations = map[string]string{"a": strconv.Itoa(d.r.IntN(9))} }},
		{"conditions changed", Allowed, func(d *draft) {
			d.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}},
	}
	return append(mutations, claimStatusMutations()...)
}

func setLabel(meta *metav1.ObjectMeta, key, value string) {
	if meta.Labels == nil {
		meta.Labels = make(map[string]string)
	}
	meta.Labels[key] = value
}

// accountOther is everything about service accounts but tokens.
func accountOther() kind {
	return kind{
		name: "serviceaccounts, not the creation of a token", weight: 2, outcome: Allowed,
		draw: func(d *draft) {
			d.about(d.anyOperation(), "", "serviceaccounts", pick(d.r, []string{"", "status", "Token"}), pick(d.r, d.state.Namespaces),
				pick(d.r, accountNames))
			if chance(d.r, 30) {
				d.Operation, d.Subresource = pick(d.r, []string{"UPDATE", "DELETE"}), "token"
			}
		},
		finish: func(d *draft) {
			var account runtime.Object = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
			d.Object, d.OldObject = account, account.DeepCopyObject()
		},
	}
}
