package generate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimStatus is an update of the status of a persistent volume claim.
func claimStatus() kind {
	return kind{
		name: "persistentvolumeclaims/status update", weight: 9, outcome: Allowed, draw: drawClaim,
		mutations: append(append(writableClaimMutations(), expansionMutations()...), fixedClaimMutations()...), finish: finishClaim,
	}
}

func drawClaim(d *draft) {
	storage := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
	}
	d.oldClaim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pick(d.r, d.state.Namespaces), Name: pick(d.r, objectNames), UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"app": "db"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{
			"kubernetes.io/pvc-protection",
		},
	}}
	d.oldClaim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv-1", StorageClassName: new("fast"),
		Resources: corev1.VolumeResourceRequirements{Requests: storage("1Gi")},
	}
	d.oldClaim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: storage("1Gi"),
		AllocatedResources: storage("2Gi"),
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{
			corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
		},
	}
	d.claim = d.oldClaim.DeepCopy()
	d.about("UPDATE", "", "persistentvolumeclaims", "status", d.claim.Namespace, d.claim.Name)
}

func finishClaim(d *draft) { d.Object, d.OldObject = d.claim, d.oldClaim }

// writableClaimMutations change fields that a node may change.
func writableClaimMutations() []mutation {
	return []mutation{
		{"capacity", Allowed, func(d *draft) {
			d.claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}},
		{"capacity removed", Allowed, func(d *draft) { d.claim.Status.Capacity = nil }},
		{"conditions", Allowed, func(d *draft) {
			d.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing}}
		}},
		{"resource version", Allowed, func(d *draft) { d.claim.ResourceVersion = pick(d.r, []string{"", "8"}) }},
		{"managed fields", Allowed, func(d *draft) {
			d.claim.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate}}
		}},
		{
			"a type on the new object alone", Allowed,
			func(d *draft) { d.claim.TypeMeta = metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"} },
		},
		{"empty lists and maps instead of none", Allowed, func(d *draft) {
			d.oldClaim.Spec.AccessModes, d.claim.Spec.AccessModes = nil, []corev1.PersistentVolumeAccessMode{}
			d.oldClaim.Labels, d.claim.Labels = nil, map[string]string{}
		}},
		{"a request written differently", Allowed, func(d *draft) {
			d.claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1024Mi")}
		}},
	}
}

// expansionMutations change fields that a node may change while the gate
// RecoverVolumeExpansionFailure is on, which it always is since 1.34.
func expansionMutations() []mutation {
	return []mutation{
		{"allocated resources", Allowed, func(d *draft) {
			d.claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
		}},
		{"allocated resources removed", Allowed, func(d *draft) { d.claim.Status.AllocatedResources = nil }},
		{"allocated resources written differently", Allowed, func(d *draft) {
			d.claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2048Mi")}
		}},
		{"statuses of allocated resources", Allowed, func(d *draft) {
			d.claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInProgress,
			}
		}},
	}
}

// fixedClaimMutations change fields that a node may not change.
func fixedClaimMutations() []mutation {
	return []mutation{
		{"phase", Refused, func(d *draft) { d.claim.Status.Phase = corev1.ClaimLost }},
		{"access modes in the status", Refused, func(d *draft) { d.claim.Status.AccessModes = nil }},
		{"class of the volume's attributes", Refused, func(d *draft) { d.claim.Status.CurrentVolumeAttributesClassName = new("gold") }},
		{
			"modification of the volume", Refused,
			func(d *draft) { d.claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{Status: "Pending"} },
		},
		{"volume", Refused, func(d *draft) { d.claim.Spec.VolumeName = "pv-2" }},
		{"storage class", Refused, func(d *draft) { d.claim.Spec.StorageClassName = new("slow") }},
		{"request", Refused, func(d *draft) {
			d.claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}},
		{"access modes", Refused, func(d *draft) { d.claim.Spec.AccessModes = append(d.claim.Spec.AccessModes, corev1.ReadWriteMany) }},
		{"selector", Refused, func(d *draft) { d.claim.Spec.Selector = &metav1.LabelSelector{} }},
		{"label", Refused, func(d *draft) { d.claim.Labels["x"] = "y" }},
		{"annotation", Refused, func(d *draft) { d.claim.Annotations["x"] = "y" }},
		{"finalizer", Refused, func(d *draft) { d.claim.Finalizers = nil }},
		{"owner", Refused, func(d *draft) { d.claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: d.node}} }},
		{"uid", Refused, func(d *draft) { d.claim.UID = "v" }},
		{"name", Refused, func(d *draft) { d.claim.Name += "0" }},
		{"generation", Refused, func(d *draft) { d.claim.Generation = 3 }},
		{"deletion", Refused, func(d *draft) { d.claim.DeletionTimestamp = new(metav1.Unix(1700000000, 0)) }},
	}
}
