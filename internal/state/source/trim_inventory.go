package source

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
