package source

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
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

// restore notes what an inventory needs of an object that other commands need too, and
// returns a function that puts it back after the object was trimmed.
func restore(o apiObject) func() {
	switch o := o.(type) {
	case *corev1.Pod:
		return restorePod(o)
	case *corev1.Node:
		taints, allocatable := o.Spec.Taints, o.Status.Allocatable
		return func() { o.Spec.Taints, o.Status.Allocatable = taints, allocatable }
	case *corev1.PersistentVolume:
		return restoreVolume(o)
	case *corev1.ServiceAccount:
		mounts := o.AutomountServiceAccountToken
		return func() { o.AutomountServiceAccountToken = mounts }
	}
	return func() {}
}

// restoreVolume keeps the folder of a node that a volume is, and the nodes that have it.
func restoreVolume(pv *corev1.PersistentVolume) func() {
	host, local, affinity := pv.Spec.HostPath, pv.Spec.Local, pv.Spec.NodeAffinity
	return func() {
		if host != nil {
			pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: host.Path}
		}
		if local != nil {
			pv.Spec.Local = &corev1.LocalVolumeSource{Path: local.Path}
		}
		if (host != nil || local != nil) && affinity != nil {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: affinity.Required}
		}
	}
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

func restorePod(pod *corev1.Pod) func() {
	places := placesOf(&pod.Spec)
	requests := keptResources(inventory.RequestsOf(&pod.Spec))
	labels := map[string]string{}
	if hash, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
	if component := inventory.ComponentOf(pod); component != "" { // commands are not kept
		labels[inventory.ComponentLabel] = component
	}
	var ended corev1.PodPhase
	if inventory.Ended(pod) {
		ended = pod.Status.Phase
	}
	owner := metav1.GetControllerOf(pod)
	kept := corev1.PodSpec{
		NodeSelector: pod.Spec.NodeSelector, Tolerations: pod.Spec.Tolerations,
		HostPID: pod.Spec.HostPID, HostNetwork: pod.Spec.HostNetwork,
		SecurityContext: userContext(pod.Spec.SecurityContext),
	}
	if users := pod.Spec.HostUsers; users != nil && !*users {
		kept.HostUsers = users
	}
	kept.RuntimeClassName = pod.Spec.RuntimeClassName
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		kept.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}}
	}
	counting, mounted := map[string]bool{}, mountedVolumes(&pod.Spec)
	for _, v := range pod.Spec.Volumes {
		counting[v.Name] = v.HostPath != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		if v.HostPath == nil {
			continue
		}
		host := &corev1.HostPathVolumeSource{} // levels of Pod Security refuse one that nothing mounts, too
		if mounted[v.Name] {
			host.Path = v.HostPath.Path
		}
		kept.Volumes = append(kept.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{HostPath: host}})
	}
	kept.InitContainers = containersOf(pod.Spec.InitContainers, counting)
	kept.Containers = containersOf(pod.Spec.Containers, counting)
	var ephemeral []corev1.Container
	for i := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	ephemeral = mergeContainers(namesOf(ephemeral), containersOf(ephemeral, counting))
	return func() {
		if len(labels) > 0 {
			pod.Labels = labels
		}
		if owner != nil {
			yes := true
			pod.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, Controller: &yes,
			}}
		}
		pod.Status.Phase = ended
		s := &pod.Spec
		s.NodeSelector, s.Tolerations, s.HostPID, s.HostNetwork = kept.NodeSelector, kept.Tolerations, kept.HostPID, kept.HostNetwork
		s.SecurityContext, s.Affinity = kept.SecurityContext, kept.Affinity
		s.HostUsers, s.RuntimeClassName = kept.HostUsers, kept.RuntimeClassName
		s.Volumes = mergeVolumes(s.Volumes, kept.Volumes)
		s.InitContainers = mergeContainers(s.InitContainers, kept.InitContainers)
		s.Containers = mergeContainers(s.Containers, kept.Containers)
		var common []corev1.Container
		for i := range s.EphemeralContainers {
			common = append(common, corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon))
		}
		s.EphemeralContainers = nil
		for _, c := range mergeContainers(common, ephemeral) {
			s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon(c),
			})
		}
		places.restore(s)
		if len(requests) > 0 {
			s.Resources = &corev1.ResourceRequirements{Requests: requests} // of the whole pod
		}
	}
}

// containersOf keeps the containers that have rights over their host. Volumes are those of which mounts count.
func containersOf(containers []corev1.Container, volumes map[string]bool) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		c := &containers[i]
		k := corev1.Container{Name: c.Name, SecurityContext: hostContext(c.SecurityContext)}
		for _, m := range c.VolumeMounts {
			if volumes[m.Name] {
				k.VolumeMounts = append(k.VolumeMounts, corev1.VolumeMount{
					Name: m.Name, ReadOnly: m.ReadOnly, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr,
				})
			}
		}
		if len(k.VolumeMounts) > 0 || k.SecurityContext != nil {
			kept = append(kept, k)
		}
	}
	return kept
}

// mountedVolumes are the names of the volumes that containers mount.
func mountedVolumes(spec *corev1.PodSpec) map[string]bool {
	mounted := map[string]bool{}
	add := func(mounts []corev1.VolumeMount) {
		for _, m := range mounts {
			mounted[m.Name] = true
		}
	}
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].VolumeMounts)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].VolumeMounts)
	}
	for i := range spec.EphemeralContainers {
		add(spec.EphemeralContainers[i].VolumeMounts)
	}
	return mounted
}

// namesOf keeps the names of containers.
func namesOf(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		kept = append(kept, corev1.Container{Name: containers[i].Name})
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

// mergeVolumes adds to volumes what is kept of those of the same names.
func mergeVolumes(volumes, kept []corev1.Volume) []corev1.Volume {
	for _, k := range kept {
		found := false
		for i := range volumes {
			if volumes[i].Name == k.Name {
				volumes[i].HostPath, found = k.HostPath, true
			}
		}
		if !found {
			volumes = append(volumes, k)
		}
	}
	return volumes
}

// mergeContainers adds to containers what is kept of those of the same names.
func mergeContainers(containers, kept []corev1.Container) []corev1.Container {
	for _, k := range kept {
		found := false
		for i := range containers {
			if containers[i].Name == k.Name {
				containers[i].SecurityContext, containers[i].VolumeMounts, found = k.SecurityContext, k.VolumeMounts, true
			}
		}
		if !found {
			containers = append(containers, k)
		}
	}
	return containers
}
