package noderestriction

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

func podExists(q *question) *refusal { return q.findPod(q.req.Name, statusNotFound) }

// findPod looks up the pod for later checks.
func (q *question) findPod(name string, status int) *refusal {
	pod, ok := q.state.Pod(q.req.Namespace, name)
	if !ok {
		return forbid(PodNotFound, "pod %s/%s does not exist", q.req.Namespace, name).withStatus(status).lagging(true)
	}
	q.pod = pod
	return nil
}

// podOnNode checks the pod in the state, not the one in the request. Another pod may
// meanwhile have the same name on this node.
func podOnNode(q *question) *refusal {
	if q.pod.Spec.NodeName != q.node {
		return forbid(PodNotOnNode, "pod %s/%s is not on node %s", q.req.Namespace, q.pod.Name, q.node).lagging(true)
	}
	return nil
}

// evictedPodExists prefers the pod's name in the request, which the API server uses,
// to the name in the eviction, which the node has written.
func evictedPodExists(q *question) *refusal {
	name := ""
	switch eviction := q.req.Object.(type) {
	case *policyv1.Eviction:
		if eviction == nil {
			return unexpected("object", nil)
		}
		name = eviction.Name
	case *policyv1beta1.Eviction:
		if eviction == nil {
			return unexpected("object", nil)
		}
		name = eviction.Name
	default:
		return unexpected("object", q.req.Object)
	}
	if q.req.Name != "" {
		name = q.req.Name
	}
	if name == "" {
		return forbid(PodNameRequired, "neither the request nor the eviction names a pod")
	}
	return q.findPod(name, statusNotFound)
}

// wasOnNode checks the stored pod, not the one that the node sends.
func wasOnNode(q *question, stored *corev1.Pod) *refusal {
	if stored.Spec.NodeName != q.node {
		return forbid(PodNotOnNode, "pod %s/%s is not on node %s", q.req.Namespace, stored.Name, q.node)
	}
	return nil
}

// storedOnNode checks the pod in the state, if the stored pod is not part of the
// request.
func storedOnNode(q *question) *refusal {
	if refusal := podExists(q); refusal != nil {
		return refusal
	}
	return wasOnNode(q, q.pod)
}

func podLabelsStay(q *question, from, to *corev1.Pod) *refusal {
	if !maps.Equal(from.Labels, to.Labels) {
		return forbid(PodLabelsChanged, "labels of pod %s/%s change with its status", q.req.Namespace, from.Name)
	}
	return nil
}

func claimStatusesStay(q *question, from, to *corev1.Pod) *refusal {
	before, after := from.Status.ResourceClaimStatuses, to.Status.ResourceClaimStatuses
	same := slices.EqualFunc(before, after, func(a, b corev1.PodResourceClaimStatus) bool {
		return a.Name == b.Name && samePointee(a.ResourceClaimName, b.ResourceClaimName)
	})
	return q.claimStatus(same, from, "resourceClaimStatuses")
}

func extendedClaimStatusStays(q *question, from, to *corev1.Pod) *refusal {
	a, b := from.Status.ExtendedResourceClaimStatus, to.Status.ExtendedResourceClaimStatus
	same := a == b || a != nil && b != nil &&
		a.ResourceClaimName == b.ResourceClaimName && slices.Equal(a.RequestMappings, b.RequestMappings)
	return q.claimStatus(same, from, "extendedResourceClaimStatus")
}

func allocatableClaimStatusesStay(q *question, from, to *corev1.Pod) *refusal {
	same := slices.EqualFunc(
		from.Status.NodeAllocatableResourceClaimStatuses, to.Status.NodeAllocatableResourceClaimStatuses,
		func(a, b corev1.NodeAllocatableResourceClaimStatus) bool {
			return a.ResourceClaimName == b.ResourceClaimName && slices.Equal(a.Containers, b.Containers) &&
				slices.EqualFunc(a.Mapping, b.Mapping, sameMapping) && slices.EqualFunc(a.Overhead, b.Overhead, sameOverhead)
		})
	return q.claimStatus(same, from, "nodeAllocatableResourceClaimStatuses")
}

func sameMapping(a, b corev1.NodeAllocatableMappedResources) bool {
	return a.Name == b.Name && apiresource.QuantityPtrEqual(a.Quantity, b.Quantity)
}

func sameOverhead(a, b corev1.NodeAllocatableOverheadResources) bool {
	return a.Name == b.Name && apiresource.QuantityPtrEqual(a.PerPod, b.PerPod) &&
		apiresource.QuantityPtrEqual(a.PerContainer, b.PerContainer)
}

func samePointee(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func (q *question) claimStatus(same bool, pod *corev1.Pod, field string) *refusal {
	if same {
		return nil
	}
	return forbid(ResourceClaimStatusChanged, "status.%s of pod %s/%s changes", field, q.req.Namespace, pod.Name)
}
