package source

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
)

// kind is a kind of object that a State keeps. Kinds are in the order of their names,
// which is also the order of a snapshot.
type kind uint8

const (
	kindAPIService kind = iota
	kindCSIDriver
	kindClusterRole
	kindClusterRoleBinding
	kindMutatingWebhookConfiguration
	kindNamespace
	kindNode
	kindNodeScope
	kindPersistentVolume
	kindPersistentVolumeClaim
	kindPod
	kindPodCertificateRequest
	kindQuarantine
	kindResourceQuota
	kindResourceSlice
	kindRole
	kindRoleBinding
	kindRuntimeClass
	kindSecret
	kindServiceAccount
	kindValidatingAdmissionPolicy
	kindValidatingAdmissionPolicyBinding
	kindValidatingWebhookConfiguration
	kindVolumeAttachment
	kindCount
)

// kindInfo describes how the API serves a kind.
type kindInfo struct {
	name     string // Pod
	group    string
	resource string // pods
	// versions that can be read from files, the newest first. The fields that
	// are kept are the same in all of them, unless decode says otherwise.
	versions   []string
	namespaced bool
	// empty returns an empty object, in the version that package graph or rbac uses.
	empty func() apiObject
	// relates are the kinds of objects whose relations to nodes come from objects of
	// this kind.
	relates []graph.Kind
	// rbac is true for roles and bindings.
	rbac bool
	// inventory is true for kinds that only an inventory needs.
	inventory bool
	// restrains is true for kinds that only make attack paths less certain.
	restrains bool
	// containment is true for NodeScopes and Quarantines, and for what only answers by NodeScopes depend on. [Watch]
	// does not read them, but for APIServices if it is asked to.
	containment bool
}

// kinds is a table and never changes.
var kinds = [kindCount]kindInfo{
	kindAPIService: {
		name: "APIService", group: apiServiceVersion.Group, resource: "apiservices",
		versions: []string{apiServiceVersion.Version, "v1beta1"}, containment: true, empty: newOf[apiService],
	},
	kindClusterRole: {
		name: "ClusterRole", group: rbacv1.GroupName, resource: "clusterroles", versions: []string{"v1"}, rbac: true,
		empty: newOf[rbacv1.ClusterRole],
	},
	kindClusterRoleBinding: {
		name: "ClusterRoleBinding", group: rbacv1.GroupName, resource: "clusterrolebindings", versions: []string{"v1"}, rbac: true,
		empty: newOf[rbacv1.ClusterRoleBinding],
	},
	kindCSIDriver: {
		name: "CSIDriver", group: storagev1.GroupName, resource: "csidrivers", versions: []string{"v1"},
		empty: newOf[storagev1.CSIDriver],
	},
	kindMutatingWebhookConfiguration: {
		name: "MutatingWebhookConfiguration", group: admissionv1.GroupName, resource: "mutatingwebhookconfigurations",
		versions: []string{"v1"}, inventory: true, empty: newOf[admissionv1.MutatingWebhookConfiguration],
	},
	kindNamespace: {name: "Namespace", resource: "namespaces", versions: []string{"v1"}, inventory: true, empty: newOf[corev1.Namespace]},
	kindNode:      {name: "Node", resource: "nodes", versions: []string{"v1"}, empty: newOf[corev1.Node]},
	kindNodeScope: {
		name: policyv1alpha1.NodeScopeKind, group: policyv1alpha1.Group, resource: policyv1alpha1.NodeScopeResource,
		versions: []string{policyv1alpha1.Version}, containment: true, empty: newOf[policyv1alpha1.NodeScope],
	},
	kindPersistentVolume: {
		name: "PersistentVolume", resource: "persistentvolumes", versions: []string{"v1"},
		relates: []graph.Kind{graph.Secret, graph.PersistentVolume}, empty: newOf[corev1.PersistentVolume],
	},
	kindPersistentVolumeClaim: {
		name: "PersistentVolumeClaim", resource: "persistentvolumeclaims", versions: []string{"v1"}, namespaced: true,
		empty: newOf[corev1.PersistentVolumeClaim],
	},
	kindPod: {
		name: "Pod", resource: "pods", versions: []string{"v1"}, namespaced: true,
		relates: []graph.Kind{
			graph.Pod, graph.Secret, graph.ConfigMap, graph.ServiceAccount,
			graph.PersistentVolumeClaim, graph.PersistentVolume, graph.ResourceClaim,
		},
		empty: newOf[corev1.Pod],
	},
	kindPodCertificateRequest: {
		name: "PodCertificateRequest", group: certificatesv1.GroupName, resource: "podcertificaterequests", namespaced: true,
		versions: []string{"v1", "v1beta1", "v1alpha1"}, relates: []graph.Kind{graph.PodCertificateRequest},
		empty: newOf[certificatesv1.PodCertificateRequest],
	},
	kindQuarantine: {
		name: policyv1alpha1.QuarantineKind, group: policyv1alpha1.Group, resource: policyv1alpha1.QuarantineResource,
		versions: []string{policyv1alpha1.Version}, containment: true, empty: newOf[policyv1alpha1.Quarantine],
	},
	kindResourceQuota: {
		name: "ResourceQuota", resource: "resourcequotas", versions: []string{"v1"}, namespaced: true, inventory: true, restrains: true,
		empty: newOf[corev1.ResourceQuota],
	},
	kindRuntimeClass: {
		name: "RuntimeClass", group: nodev1.GroupName, resource: "runtimeclasses", versions: []string{"v1"}, inventory: true,
		restrains: true, empty: newOf[nodev1.RuntimeClass],
	},
	kindResourceSlice: {
		name: "ResourceSlice", group: resourcev1.GroupName, resource: "resourceslices",
		versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, relates: []graph.Kind{graph.ResourceSlice},
		empty: newOf[resourcev1.ResourceSlice],
	},
	kindRole: {
		name: "Role", group: rbacv1.GroupName, resource: "roles", versions: []string{"v1"}, namespaced: true, rbac: true,
		empty: newOf[rbacv1.Role],
	},
	kindRoleBinding: {
		name: "RoleBinding", group: rbacv1.GroupName, resource: "rolebindings", versions: []string{"v1"}, namespaced: true,
		rbac: true, empty: newOf[rbacv1.RoleBinding],
	},
	kindSecret: {
		name: "Secret", resource: "secrets", versions: []string{"v1"}, namespaced: true, inventory: true,
		empty: newOf[corev1.Secret],
	},
	kindValidatingAdmissionPolicy: {
		name: "ValidatingAdmissionPolicy", group: admissionv1.GroupName, resource: "validatingadmissionpolicies",
		versions: []string{"v1", "v1beta1"}, inventory: true, empty: newOf[admissionv1.ValidatingAdmissionPolicy],
	},
	kindValidatingAdmissionPolicyBinding: {
		name: "ValidatingAdmissionPolicyBinding", group: admissionv1.GroupName, resource: "validatingadmissionpolicybindings",
		versions: []string{"v1", "v1beta1"}, inventory: true, empty: newOf[admissionv1.ValidatingAdmissionPolicyBinding],
	},
	kindValidatingWebhookConfiguration: {
		name: "ValidatingWebhookConfiguration", group: admissionv1.GroupName, resource: "validatingwebhookconfigurations",
		versions: []string{"v1"}, inventory: true, empty: newOf[admissionv1.ValidatingWebhookConfiguration],
	},
	kindServiceAccount: {
		name: "ServiceAccount", resource: "serviceaccounts", versions: []string{"v1"}, namespaced: true,
		empty: newOf[corev1.ServiceAccount],
	},
	kindVolumeAttachment: {
		name: "VolumeAttachment", group: storagev1.GroupName, resource: "volumeattachments", versions: []string{"v1"},
		relates: []graph.Kind{graph.VolumeAttachment}, empty: newOf[storagev1.VolumeAttachment],
	},
}

func newOf[T any, P interface {
	*T
	apiObject
}]() apiObject {
	return P(new(T))
}

// describe returns how the API serves the kind.
func (k kind) describe() *kindInfo { return &kinds[k] }

// String returns the Kubernetes kind: "Pod".
func (k kind) String() string { return k.describe().name }

func (i *kindInfo) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: i.group, Resource: i.resource}
}

func (i *kindInfo) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.group, Version: i.versions[0], Kind: i.name}
}

// kindsWhere returns the kinds for which a condition is true.
func kindsWhere(is func(*kindInfo) bool) Kinds {
	var on Kinds
	for k := range kindCount {
		if is(k.describe()) {
			on |= 1 << k
		}
	}
	return on
}

// kindOf returns the kept kind of a group and kind name.
func kindOf(group, name string) (kind, bool) {
	return findKind(func(i *kindInfo) bool { return i.group == group && i.name == name })
}

// findKind returns the first kind for which a condition is true.
func findKind(is func(*kindInfo) bool) (kind, bool) {
	i := slices.IndexFunc(kinds[:], func(info kindInfo) bool { return is(&info) })
	return kind(max(i, 0)), i >= 0
}
