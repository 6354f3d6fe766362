package noderestriction

import (
	corev1 "k8s.io/api/core/v1"
)

func isMirrorPod(_ *question, pod *corev1.Pod) *refusal {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return forbid(NotAMirrorPod, "the pod has no annotation %s", corev1.MirrorPodAnnotationKey)
	}
	return nil
}

func namesNode(q *question, pod *corev1.Pod) *refusal {
	if pod.Spec.NodeName == q.node {
		return nil
	}
	return forbid(PodNotOnNode, "the pod's spec.nodeName is %q, not %s", pod.Spec.NodeName, q.node)
}

// ownedByNode requires that a mirror pod is garbage-collected with its node, and with
// no other object.
func ownedByNode(q *question, pod *corev1.Pod) *refusal {
	if n := len(pod.OwnerReferences); n != 1 {
		return forbid(OwnerNotThisNode, "the pod has %d owner references instead of one, to node %s", n, q.node)
	}
	owner := &pod.OwnerReferences[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != q.node:
		return forbid(OwnerNotThisNode, "the pod's owner is the %q %q of version %q, not the Node %s of v1", owner.Kind, owner.Name,
			owner.APIVersion, q.node)
	case owner.Controller == nil || !*owner.Controller:
		return forbid(OwnerNotController, "the pod's owner reference to node %s lacks controller: true", q.node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return forbid(OwnerBlocksDeletion, "the pod's owner reference to node %s has blockOwnerDeletion: true", q.node)
	}
	return nil
}

func ownerUID(q *question, pod *corev1.Pod) *refusal {
	node, ok := q.state.Node(q.node)
	if !ok {
		return forbid(NodeNotFound, "node %s, which owns the pod, does not exist", q.node).withStatus(statusNotFound).lagging(true)
	}
	if uid := pod.OwnerReferences[0].UID; uid != node.UID {
		return forbid(NodeUIDMismatch, "the pod's owner is node %s with uid %q, which is not the uid of the Node object", q.node,
			uid).lagging(true)
	}
	return nil
}

func refersToNothing(_ *question, pod *corev1.Pod) *refusal {
	what := podReference(pod)
	if what == "" {
		what = volumeReference(pod)
	}
	if what == "" && len(pod.Spec.ResourceClaims) > 0 {
		what = "resource claims (spec.resourceClaims)"
	}
	return mirrorPodReference(what)
}

// refersToNothingKnown is refersToNothing before Kubernetes 1.34, which allowed
// unknown kinds of volumes.
func refersToNothingKnown(_ *question, pod *corev1.Pod) *refusal {
	what := podReference(pod)
	if what == "" {
		what = volumeReferenceBefore34(pod)
	}
	return mirrorPodReference(what)
}

func hasNoResourceClaims(_ *question, pod *corev1.Pod) *refusal {
	if len(pod.Spec.ResourceClaims) > 0 {
		return mirrorPodReference("resource claims (spec.resourceClaims)")
	}
	return nil
}

func mirrorPodReference(what string) *refusal {
	if what == "" {
		return nil
	}
	return forbid(MirrorPodRefersToObject, "a mirror pod must not refer to %s", what)
}
