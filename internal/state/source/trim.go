package source

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// trim drops, in place, all fields of an object that are not kept. Files, live
// clusters and snapshots all use it. For an inventory more is kept.
func trim(o apiObject, forInventory bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		trimPod(o, forInventory)
	case *corev1.PersistentVolume:
		trimPersistentVolume(o, forInventory)
	case *corev1.PersistentVolumeClaim:
		kept := corev1.PersistentVolumeClaim{
			ObjectMeta: named(&o.ObjectMeta),
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: o.Spec.VolumeName},
		}
		if forInventory && o.Spec.VolumeName == "" {
			kept.Spec.StorageClassName = o.Spec.StorageClassName // which volumes it may be bound to
		}
		*o = kept
	case *corev1.Node:
		trimNode(o, forInventory)
	case *corev1.ServiceAccount:
		meta := named(&o.ObjectMeta)
		meta.UID = o.UID
		kept := corev1.ServiceAccount{ObjectMeta: meta}
		if forInventory {
			kept.AutomountServiceAccountToken = o.AutomountServiceAccountToken
		}
		*o = kept
	case *storagev1.VolumeAttachment:
		*o = storagev1.VolumeAttachment{
			ObjectMeta: named(&o.ObjectMeta),
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: o.Spec.NodeName},
		}
	case *storagev1.CSIDriver:
		*o = storagev1.CSIDriver{
			ObjectMeta: named(&o.ObjectMeta),
			Spec:       storagev1.CSIDriverSpec{TokenRequests: o.Spec.TokenRequests},
		}
	case *resourcev1.ResourceSlice:
		*o = resourcev1.ResourceSlice{
			ObjectMeta: named(&o.ObjectMeta),
			Spec:       resourcev1.ResourceSliceSpec{NodeName: o.Spec.NodeName},
		}
	case *certificatesv1.PodCertificateRequest:
		*o = certificatesv1.PodCertificateRequest{
			ObjectMeta: named(&o.ObjectMeta),
			Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: o.Spec.NodeName},
		}
	case *apiService:
		*o = apiService{ObjectMeta: named(&o.ObjectMeta), Spec: o.Spec}
	case *policyv1alpha1.NodeScope, *policyv1alpha1.Quarantine:
		trimContainment(o)
	case *corev1.Namespace, *corev1.Secret, *corev1.ResourceQuota, *nodev1.RuntimeClass,
		*admissionv1.ValidatingWebhookConfiguration, *admissionv1.MutatingWebhookConfiguration,
		*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
		trimInventory(o)
	default:
		trimRBAC(o)
	}
}

// trimNode keeps what commands show of a node, and for an inventory what it lets run on it.
func trimNode(node *corev1.Node, forInventory bool) {
	meta := named(&node.ObjectMeta)
	meta.UID = node.UID
	meta.Labels = node.Labels
	kept := corev1.Node{
		ObjectMeta: meta,
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: node.Status.NodeInfo.KubeletVersion,
		}},
	}
	if forInventory {
		kept.Spec.Taints, kept.Status.Allocatable = node.Spec.Taints, node.Status.Allocatable
	}
	*node = kept
}

// restorable keeps the names of an object, and whether the API server restores it when it starts.
func restorable(o *metav1.ObjectMeta) metav1.ObjectMeta {
	meta := named(o)
	if o.Labels[bootstrapping] == rbacDefaults {
		meta.Labels = map[string]string{bootstrapping: rbacDefaults}
	}
	if o.Annotations[autoUpdate] == "false" {
		meta.Annotations = map[string]string{autoUpdate: "false"}
	}
	return meta
}

// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
const (
	bootstrapping = "kubernetes.io/bootstrapping"
	rbacDefaults  = "rbac-defaults"
	autoUpdate    = "rbac.authorization.kubernetes.io/autoupdate"
)

// trimRBAC keeps rules, subjects and role references. Labels of cluster roles decide
// which aggregated roles include them.
func trimRBAC(o apiObject) {
	switch o := o.(type) {
	case *rbacv1.Role:
		*o = rbacv1.Role{ObjectMeta: restorable(&o.ObjectMeta), Rules: o.Rules}
	case *rbacv1.ClusterRole:
		meta := restorable(&o.ObjectMeta)
		meta.Labels = o.Labels
		*o = rbacv1.ClusterRole{ObjectMeta: meta, Rules: o.Rules, AggregationRule: o.AggregationRule}
	case *rbacv1.RoleBinding:
		*o = rbacv1.RoleBinding{ObjectMeta: restorable(&o.ObjectMeta), Subjects: o.Subjects, RoleRef: o.RoleRef}
	case *rbacv1.ClusterRoleBinding:
		*o = rbacv1.ClusterRoleBinding{ObjectMeta: restorable(&o.ObjectMeta), Subjects: o.Subjects, RoleRef: o.RoleRef}
	}
}
