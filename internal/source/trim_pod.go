package source

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trimPod drops, in place, all fields of a pod except those that relate it to other
// objects, and those that decide which tokens and certificates its node may request
// for it. Values of environment variables are never kept.
func trimPod(pod *corev1.Pod) {
	meta := named(&pod.ObjectMeta)
	meta.UID = pod.UID
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		meta.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} // its presence counts
	}
	*pod = corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName:            pod.Spec.NodeName,
			ServiceAccountName:  cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount),
			ImagePullSecrets:    pod.Spec.ImagePullSecrets,
			InitContainers:      trimContainers(pod.Spec.InitContainers),
			Containers:          trimContainers(pod.Spec.Containers),
			EphemeralContainers: trimEphemeralContainers(pod.Spec.EphemeralContainers),
			Volumes:             trimVolumes(pod.Spec.Volumes),
			ResourceClaims:      pod.Spec.ResourceClaims,
		},
		Status: corev1.PodStatus{
			ResourceClaimStatuses:       pod.Status.ResourceClaimStatuses,
			ExtendedResourceClaimStatus: trimExtendedClaim(pod.Status.ExtendedResourceClaimStatus),
		},
	}
}

// named keeps the names of an object.
func named(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace}
}

// trimContainers keeps the containers whose environment refers to objects.
func trimContainers(containers []corev1.Container) []corev1.Container {
	kept := containers[:0]
	for i := range containers {
		c := &containers[i]
		env, from := trimEnv(c.Env), trimEnvFrom(c.EnvFrom)
		if len(env)+len(from) > 0 {
			kept = append(kept, corev1.Container{Name: c.Name, Env: env, EnvFrom: from})
		}
	}
	return orNil(kept)
}

func trimEphemeralContainers(containers []corev1.EphemeralContainer) []corev1.EphemeralContainer {
	kept := containers[:0]
	for i := range containers {
		c := &containers[i]
		env, from := trimEnv(c.Env), trimEnvFrom(c.EnvFrom)
		if len(env)+len(from) > 0 {
			kept = append(kept, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: c.Name, Env: env, EnvFrom: from,
			}})
		}
	}
	return orNil(kept)
}

// trimEnv keeps the names of the objects that variables are read from.
func trimEnv(env []corev1.EnvVar) []corev1.EnvVar {
	kept := env[:0]
	for _, v := range env {
		if v.ValueFrom == nil {
			continue
		}
		from := corev1.EnvVarSource{}
		if ref := v.ValueFrom.SecretKeyRef; ref != nil && ref.Name != "" {
			from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: ref.LocalObjectReference}
		}
		if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil && ref.Name != "" {
			from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: ref.LocalObjectReference}
		}
		if from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil {
			kept = append(kept, corev1.EnvVar{ValueFrom: &from})
		}
	}
	return orNil(kept)
}

func trimEnvFrom(sources []corev1.EnvFromSource) []corev1.EnvFromSource {
	kept := sources[:0]
	for _, s := range sources {
		from := corev1.EnvFromSource{}
		if s.SecretRef != nil && s.SecretRef.Name != "" {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: s.SecretRef.LocalObjectReference}
		}
		if s.ConfigMapRef != nil && s.ConfigMapRef.Name != "" {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: s.ConfigMapRef.LocalObjectReference}
		}
		if from.SecretRef != nil || from.ConfigMapRef != nil {
			kept = append(kept, from)
		}
	}
	return orNil(kept)
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
