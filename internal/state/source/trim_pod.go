package source

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// generatedToken begins the names of the volumes that the API server adds to pods: no template has
// them, and their names differ from pod to pod.
const generatedToken = "kube-api-access-"

// podTrimmer keeps parts of one pod.
type podTrimmer struct {
	// forInventory is true if what an inventory needs is kept. An inventory notes the places of entries in lists: so entries of
	// which nothing is kept stay in their places, empty.
	forInventory bool
	// hostProcess is true if all containers are processes of their node, unless they say otherwise.
	hostProcess bool
	// mounted are the volumes that containers mount, and giving the volumes whose mounts count, by name.
	mounted, giving map[string]bool
}

// trimPod drops, in place, all fields of a pod except the fields that relate it to other
// objects, and the fields that decide which tokens and certificates its node may request
// for it; for an inventory also the fields that it reads. Values of environment variables are never kept.
func trimPod(pod *corev1.Pod, forInventory bool) {
	meta := named(&pod.ObjectMeta)
	meta.UID = pod.UID
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		meta.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} // its presence counts
	}
	kept := corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName:           pod.Spec.NodeName,
			ServiceAccountName: cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount),
			ImagePullSecrets:   pod.Spec.ImagePullSecrets,
			ResourceClaims:     pod.Spec.ResourceClaims,
		},
		Status: corev1.PodStatus{
			ResourceClaimStatuses:       pod.Status.ResourceClaimStatuses,
			ExtendedResourceClaimStatus: trimExtendedClaim(pod.Status.ExtendedResourceClaimStatus),
		},
	}
	t := &podTrimmer{forInventory: forInventory}
	if forInventory {
		keepForInventory(pod, &kept)
		t.look(&pod.Spec)
	}
	kept.Spec.InitContainers = trimList(pod.Spec.InitContainers, forInventory, t.container)
	kept.Spec.Containers = trimList(pod.Spec.Containers, forInventory, t.container)
	kept.Spec.EphemeralContainers = trimList(pod.Spec.EphemeralContainers, forInventory, t.ephemeralContainer)
	kept.Spec.Volumes = trimList(pod.Spec.Volumes, forInventory, t.volume)
	*pod = kept
}

// keepForInventory keeps what an inventory reads beside containers and volumes.
func keepForInventory(pod, kept *corev1.Pod) {
	labels := map[string]string{}
	if hash, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
	if component := inventory.ComponentOf(pod); component != "" { // commands are not kept
		labels[inventory.ComponentLabel] = component
	}
	if len(labels) > 0 {
		kept.Labels = labels
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		yes := true
		kept.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, Controller: &yes,
		}}
	}
	if phase := pod.Status.Phase; inventory.Ended(pod) || phase == corev1.PodPending || phase == corev1.PodRunning {
		kept.Status.Phase = phase
	}
	from, spec := &pod.Spec, &kept.Spec
	spec.NodeSelector, spec.Tolerations, spec.RuntimeClassName = from.NodeSelector, from.Tolerations, from.RuntimeClassName
	spec.HostPID, spec.HostNetwork, spec.SecurityContext = from.HostPID, from.HostNetwork, userContext(from.SecurityContext)
	if users := from.HostUsers; users != nil && !*users {
		spec.HostUsers = users
	}
	if a := from.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}}
	}
	if requests := keptResources(inventory.RequestsOf(from)); len(requests) > 0 {
		spec.Resources = &corev1.ResourceRequirements{Requests: requests} // of the whole pod
	}
}

// look notes which volumes are mounted, and of which of them mounts count.
func (t *podTrimmer) look(spec *corev1.PodSpec) {
	t.mounted, t.giving = map[string]bool{}, map[string]bool{}
	t.hostProcess = spec.SecurityContext != nil && windowsOf(spec.SecurityContext.WindowsOptions) != nil
	add := func(mounts []corev1.VolumeMount) {
		for _, m := range mounts {
			t.mounted[m.Name] = true
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
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		source, _ := trimVolumeSource(&v.VolumeSource, true)
		source.ConfigMap = nil
		if strings.HasPrefix(v.Name, generatedToken) {
			source.Projected = nil
		}
		t.giving[v.Name] = v.HostPath != nil || source != corev1.VolumeSource{}
	}
}

// trimList replaces, in place, the entries of a list by what is kept of them. If places count, entries of which nothing is kept
// stay, empty, before others of which something is.
func trimList[T any](list []T, places bool, trim func(*T) (T, bool)) []T {
	kept, end := list[:0], 0
	for i := range list {
		entry, counts := trim(&list[i])
		if counts || places {
			kept = append(kept, entry)
		}
		if counts {
			end = len(kept)
		}
	}
	return orNil(kept[:end])
}

// named keeps the names of an object.
func named(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace}
}

// container keeps a container whose environment refers to objects; for an inventory also one with rights over its host.
func (t *podTrimmer) container(c *corev1.Container) (corev1.Container, bool) {
	kept := corev1.Container{
		Env: trimList(c.Env, t.forInventory, trimVariable), EnvFrom: trimList(c.EnvFrom, t.forInventory, trimVariables),
	}
	if t.forInventory {
		kept.SecurityContext, kept.VolumeMounts = hostContext(c.SecurityContext), trimList(c.VolumeMounts, true, t.mount)
	}
	if len(kept.Env)+len(kept.EnvFrom)+len(kept.VolumeMounts) == 0 && kept.SecurityContext == nil && !t.hostProcess {
		return corev1.Container{}, false
	}
	kept.Name = c.Name
	if always := corev1.ContainerRestartPolicyAlways; t.forInventory && c.RestartPolicy != nil && *c.RestartPolicy == always {
		kept.RestartPolicy = &always
	}
	return kept, true
}

// ephemeralContainer keeps an ephemeral container as others; for an inventory always, because pods that have some differ from
// their template.
func (t *podTrimmer) ephemeralContainer(c *corev1.EphemeralContainer) (corev1.EphemeralContainer, bool) {
	common := corev1.Container(c.EphemeralContainerCommon)
	kept, ok := t.container(&common)
	if t.forInventory {
		kept.Name, ok = c.Name, true
	}
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(kept)}, ok
}

func (t *podTrimmer) mount(m *corev1.VolumeMount) (corev1.VolumeMount, bool) {
	if !t.giving[m.Name] {
		return corev1.VolumeMount{}, false
	}
	return corev1.VolumeMount{Name: m.Name, ReadOnly: m.ReadOnly, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr}, true
}

// trimVariable keeps the name of the object that a variable is read from.
func trimVariable(v *corev1.EnvVar) (corev1.EnvVar, bool) {
	if v.ValueFrom == nil {
		return corev1.EnvVar{}, false
	}
	from := corev1.EnvVarSource{}
	if ref := v.ValueFrom.SecretKeyRef; ref != nil && ref.Name != "" {
		from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: ref.LocalObjectReference}
	}
	if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil && ref.Name != "" {
		from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: ref.LocalObjectReference}
	}
	if from == (corev1.EnvVarSource{}) {
		return corev1.EnvVar{}, false
	}
	return corev1.EnvVar{ValueFrom: &from}, true
}

// trimVariables keeps the name of the object that variables are read from.
func trimVariables(s *corev1.EnvFromSource) (corev1.EnvFromSource, bool) {
	from := corev1.EnvFromSource{}
	if s.SecretRef != nil && s.SecretRef.Name != "" {
		from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: s.SecretRef.LocalObjectReference}
	}
	if s.ConfigMapRef != nil && s.ConfigMapRef.Name != "" {
		from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: s.ConfigMapRef.LocalObjectReference}
	}
	return from, from != corev1.EnvFromSource{}
}

func trimExtendedClaim(status *corev1.PodExtendedResourceClaimStatus) *corev1.PodExtendedResourceClaimStatus {
	if status == nil {
		return nil
	}
	return &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: status.ResourceClaimName}
}

// orNil returns nil for an empty slice.
func orNil[E any](s []E) []E {
	if len(s) == 0 {
		return nil
	}
	return s
}
