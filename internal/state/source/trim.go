package source

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
	case *rbacv1.Role:
		*o = rbacv1.Role{ObjectMeta: restorable(&o.ObjectMeta), Rules: o.Rules}
	case *rbacv1.ClusterRole:
		meta := restorable(&o.ObjectMeta)
		meta.Labels = o.Labels // decide which aggregated roles include it
		*o = rbacv1.ClusterRole{ObjectMeta: meta, Rules: o.Rules, AggregationRule: o.AggregationRule}
	case *rbacv1.RoleBinding:
		*o = rbacv1.RoleBinding{ObjectMeta: restorable(&o.ObjectMeta), Subjects: o.Subjects, RoleRef: o.RoleRef}
	case *rbacv1.ClusterRoleBinding:
		*o = rbacv1.ClusterRoleBinding{ObjectMeta: restorable(&o.ObjectMeta), Subjects: o.Subjects, RoleRef: o.RoleRef}
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

// trimInventory keeps what an inventory needs of the kinds that only it needs. The data of
// secrets is never kept.
func trimInventory(o apiObject) {
	switch o := o.(type) {
	case *corev1.Namespace:
		meta := named(&o.ObjectMeta)
		meta.Labels = o.Labels
		status := corev1.NamespaceStatus{}
		if inventory.Terminating(o) {
			status.Phase = corev1.NamespaceTerminating
		}
		*o = corev1.Namespace{ObjectMeta: meta, Status: status}
	case *corev1.ResourceQuota:
		*o = keptQuota(o)
	case *nodev1.RuntimeClass:
		*o = nodev1.RuntimeClass{ObjectMeta: named(&o.ObjectMeta), Handler: o.Handler}
	case *corev1.Secret:
		meta := named(&o.ObjectMeta)
		if account, ok := o.Annotations[corev1.ServiceAccountNameKey]; ok {
			meta.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
		}
		*o = corev1.Secret{ObjectMeta: meta, Type: o.Type}
	case *admissionv1.ValidatingAdmissionPolicy:
		*o = admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named(&o.ObjectMeta), Spec: o.Spec}
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		*o = admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named(&o.ObjectMeta), Spec: o.Spec}
	case *admissionv1.ValidatingWebhookConfiguration:
		kept := admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named(&o.ObjectMeta)}
		for _, w := range o.Webhooks {
			kept.Webhooks = append(kept.Webhooks, admissionv1.ValidatingWebhook{
				Name: w.Name, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector,
			})
		}
		*o = kept
	case *admissionv1.MutatingWebhookConfiguration:
		kept := admissionv1.MutatingWebhookConfiguration{ObjectMeta: named(&o.ObjectMeta)}
		for _, w := range o.Webhooks {
			kept.Webhooks = append(kept.Webhooks, admissionv1.MutatingWebhook{
				Name: w.Name, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector,
			})
		}
		*o = kept
	}
}

// keptQuota keeps the numbers of objects that a quota limits.
func keptQuota(o *corev1.ResourceQuota) corev1.ResourceQuota {
	kept := corev1.ResourceQuota{ObjectMeta: named(&o.ObjectMeta)}
	if len(o.Spec.Scopes) > 0 || o.Spec.ScopeSelector != nil {
		return kept
	}
	for resource, hard := range o.Spec.Hard {
		if !inventory.Counts(resource) {
			continue
		}
		if kept.Spec.Hard == nil {
			kept.Spec.Hard = corev1.ResourceList{}
		}
		kept.Spec.Hard[resource] = hard
		if used, ok := o.Status.Used[resource]; ok {
			if kept.Status.Used == nil {
				kept.Status.Used = corev1.ResourceList{}
			}
			kept.Status.Used[resource] = used
		}
	}
	return kept
}

// secretOf makes a secret of its metadata, from which its type follows: the controller that fills
// tokens of service accounts notes the account's uid, and bootstrap tokens have a name of their own.
func secretOf(m *metav1.PartialObjectMetadata) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: m.ObjectMeta}
	_, named := m.Annotations[corev1.ServiceAccountNameKey]
	_, filled := m.Annotations[corev1.ServiceAccountUIDKey]
	switch {
	case named && filled:
		secret.Type = corev1.SecretTypeServiceAccountToken
	case m.Namespace == metav1.NamespaceSystem && strings.HasPrefix(m.Name, "bootstrap-token-"):
		secret.Type = corev1.SecretTypeBootstrapToken
	}
	return secret
}

// keptResources keeps the amounts that an inventory has.
func keptResources(all corev1.ResourceList) corev1.ResourceList {
	var kept corev1.ResourceList
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, ok := all[name]; ok && !amount.IsZero() {
			if kept == nil {
				kept = corev1.ResourceList{}
			}
			kept[name] = amount
		}
	}
	return kept
}

// hostContext keeps what of a container's security context gives rights over the host, and
// the user that has them; nil if nothing gives any.
func hostContext(s *corev1.SecurityContext) *corev1.SecurityContext {
	if s == nil {
		return nil
	}
	kept := &corev1.SecurityContext{RunAsUser: s.RunAsUser, RunAsNonRoot: s.RunAsNonRoot, WindowsOptions: windowsOf(s.WindowsOptions)}
	if s.Privileged != nil && *s.Privileged {
		kept.Privileged = s.Privileged
	}
	if s.Capabilities != nil && len(s.Capabilities.Add) > 0 {
		kept.Capabilities = &corev1.Capabilities{Add: s.Capabilities.Add}
	}
	if *kept == (corev1.SecurityContext{}) {
		return nil
	}
	return kept
}

// userContext keeps the user of a pod's containers, and whether they are processes of their node.
func userContext(s *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if s == nil {
		return nil
	}
	kept := &corev1.PodSecurityContext{RunAsUser: s.RunAsUser, RunAsNonRoot: s.RunAsNonRoot, WindowsOptions: windowsOf(s.WindowsOptions)}
	if kept.RunAsUser == nil && kept.RunAsNonRoot == nil && kept.WindowsOptions == nil {
		return nil
	}
	return kept
}

// windowsOf keeps whether containers are processes of their node.
func windowsOf(o *corev1.WindowsSecurityContextOptions) *corev1.WindowsSecurityContextOptions {
	if o == nil || o.HostProcess == nil {
		return nil
	}
	return &corev1.WindowsSecurityContextOptions{HostProcess: o.HostProcess}
}
