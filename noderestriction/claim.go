package noderestriction

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func onlySizeChanges(q *question, from, to *corev1.PersistentVolumeClaim) *refusal {
	return q.claimStays(withoutSize(from), withoutSize(to))
}

func onlySizeAndAllocationChange(q *question, from, to *corev1.PersistentVolumeClaim) *refusal {
	return q.claimStays(withoutAllocation(withoutSize(from)), withoutAllocation(withoutSize(to)))
}

// withoutSize copies a claim without the fields that a node may write, and without
// the fields that the API server sets.
func withoutSize(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	rest := *claim
	rest.TypeMeta = metav1.TypeMeta{}
	rest.ResourceVersion, rest.ManagedFields = "", nil
	rest.Status.Capacity, rest.Status.Conditions = nil, nil
	return &rest
}

// withoutAllocation removes the allocation from a copy that withoutSize returned.
func withoutAllocation(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Status.AllocatedResources, claim.Status.AllocatedResourceStatuses = nil, nil
	return claim
}

func (q *question) claimStays(from, to *corev1.PersistentVolumeClaim) *refusal {
	same := equality.Semantic.DeepEqual
	field := ""
	switch {
	case !same(from.ObjectMeta, to.ObjectMeta):
		field = "metadata"
	case !same(from.Spec, to.Spec):
		field = "spec"
	case !same(from.Status, to.Status):
		field = "status, except for the size"
	default:
		return nil
	}
	return forbid(ClaimChanged, "claim %s/%s changes in %s", q.req.Namespace, from.Name, field)
}
