package review

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// claimReading has all fields of a claim except those that a node or the API server may
// write: the resource version, managed fields, the capacity and the conditions.
type claimReading struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        claimMetadata `json:"metadata"`
	Spec            claimSpec     `json:"spec"`
	Status          claimStatus   `json:"status"`
}

type claimMetadata struct {
	Name                       string                      `json:"name"`
	GenerateName               string                      `json:"generateName"`
	Namespace                  string                      `json:"namespace"`
	SelfLink                   string                      `json:"selfLink"`
	UID                        types.UID                   `json:"uid"`
	Generation                 int64                       `json:"generation"`
	CreationTimestamp          metav1.Time                 `json:"creationTimestamp"`
	DeletionTimestamp          *metav1.Time                `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds *int64                      `json:"deletionGracePeriodSeconds"`
	Labels                     value[map[string]string]    `json:"labels"`
	Annotations                value[map[string]string]    `json:"annotations"`
	OwnerReferences            list[metav1.OwnerReference] `json:"ownerReferences"`
	Finalizers                 list[string]                `json:"finalizers"`
}

type claimSpec struct {
	AccessModes list[corev1.PersistentVolumeAccessMode] `json:"accessModes"`
	Selector    *struct {
		MatchLabels      value[map[string]string]              `json:"matchLabels"`
		MatchExpressions list[metav1.LabelSelectorRequirement] `json:"matchExpressions"`
	} `json:"selector"`
	Resources struct {
		Limits   value[corev1.ResourceList] `json:"limits"`
		Requests value[corev1.ResourceList] `json:"requests"`
	} `json:"resources"`
	VolumeName                string                            `json:"volumeName"`
	StorageClassName          *string                           `json:"storageClassName"`
	VolumeMode                *corev1.PersistentVolumeMode      `json:"volumeMode"`
	DataSource                *corev1.TypedLocalObjectReference `json:"dataSource"`
	DataSourceRef             *corev1.TypedObjectReference      `json:"dataSourceRef"`
	VolumeAttributesClassName *string                           `json:"volumeAttributesClassName"`
}

type claimStatus struct {
	Phase                            corev1.PersistentVolumeClaimPhase                         `json:"phase"`
	AccessModes                      list[corev1.PersistentVolumeAccessMode]                   `json:"accessModes"`
	AllocatedResources               value[corev1.ResourceList]                                `json:"allocatedResources"`
	AllocatedResourceStatuses        value[map[corev1.ResourceName]corev1.ClaimResourceStatus] `json:"allocatedResourceStatuses"`
	CurrentVolumeAttributesClassName *string                                                   `json:"currentVolumeAttributesClassName"`
	ModifyVolumeStatus               *corev1.ModifyVolumeStatus                                `json:"modifyVolumeStatus"`
	HealthStatus                     value[*corev1.VolumeHealthStatus]                         `json:"healthStatus"`
}

func (r *claimReading) target() any { return r }

// resolve is called for updates: no rule reads a claim without the old one.
func (r *claimReading) resolve(p *pairing, from reading) {
	if from == nil {
		return
	}
	old := from.(*claimReading)
	m, oldM := &r.Metadata, &old.Metadata
	m.Labels.resolve(p, "metadata.labels", &oldM.Labels)
	m.Annotations.resolve(p, "metadata.annotations", &oldM.Annotations)
	m.OwnerReferences.resolve(p, "metadata.ownerReferences", &oldM.OwnerReferences)
	m.Finalizers.resolve(p, "metadata.finalizers", &oldM.Finalizers)

	s, oldS := &r.Spec, &old.Spec
	s.AccessModes.resolve(p, "spec.accessModes", &oldS.AccessModes)
	if s.Selector != nil && oldS.Selector != nil {
		s.Selector.MatchLabels.resolve(p, "spec.selector.matchLabels", &oldS.Selector.MatchLabels)
		s.Selector.MatchExpressions.resolve(p, "spec.selector.matchExpressions", &oldS.Selector.MatchExpressions)
	}
	s.Resources.Limits.resolve(p, "spec.resources.limits", &oldS.Resources.Limits)
	s.Resources.Requests.resolve(p, "spec.resources.requests", &oldS.Resources.Requests)

	t, oldT := &r.Status, &old.Status
	t.AccessModes.resolve(p, "status.accessModes", &oldT.AccessModes)
	t.AllocatedResources.resolve(p, "status.allocatedResources", &oldT.AllocatedResources)
	t.AllocatedResourceStatuses.resolve(p, "status.allocatedResourceStatuses", &oldT.AllocatedResourceStatuses)
	t.HealthStatus.resolve(p, "status.healthStatus", &oldT.HealthStatus)
}

func (r *claimReading) object() runtime.Object {
	m, s, t := &r.Metadata, &r.Spec, &r.Status
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: r.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, GenerateName: m.GenerateName, Namespace: m.Namespace, UID: m.UID, Generation: m.Generation,
			SelfLink:          m.SelfLink, //lint:ignore SA1019 NodeRestriction compares it
			CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
			DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
			Labels:                     m.Labels.decoded, Annotations: m.Annotations.decoded, OwnerReferences: m.OwnerReferences.decoded,
			Finalizers: m.Finalizers.decoded,
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: s.AccessModes.decoded,
			Resources:   corev1.VolumeResourceRequirements{Limits: s.Resources.Limits.decoded, Requests: s.Resources.Requests.decoded},
			VolumeName:  s.VolumeName, StorageClassName: s.StorageClassName, VolumeMode: s.VolumeMode,
			DataSource: s.DataSource, DataSourceRef: s.DataSourceRef, VolumeAttributesClassName: s.VolumeAttributesClassName,
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: t.Phase, AccessModes: t.AccessModes.decoded,
			AllocatedResources: t.AllocatedResources.decoded, AllocatedResourceStatuses: t.AllocatedResourceStatuses.decoded,
			CurrentVolumeAttributesClassName: t.CurrentVolumeAttributesClassName, ModifyVolumeStatus: t.ModifyVolumeStatus,
			HealthStatus: t.HealthStatus.decoded,
		},
	}
	if s.Selector != nil {
		claim.Spec.Selector = &metav1.LabelSelector{
			MatchLabels: s.Selector.MatchLabels.decoded, MatchExpressions: s.Selector.MatchExpressions.decoded,
		}
	}
	return claim
}
