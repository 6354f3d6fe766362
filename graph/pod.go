package graph

import corev1 "k8s.io/api/core/v1"

// podReferences appends the references of a pod: its node first, then, unless it is a
// mirror pod, every object that its kubelet needs to run it. A pod that is not bound
// to a node has no references.
func podReferences(refs references, pod *corev1.Pod) references {
	if pod.Spec.NodeName == "" {
		return refs
	}
	refs.add(Node, fieldNodeName, "", pod.Spec.NodeName, "")
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return refs
	}
	refs.add(ServiceAccount, fieldServiceAccountName, pod.Namespace, pod.Spec.ServiceAccountName, "")
	for i := range pod.Spec.ImagePullSecrets {
		refs.add(Secret, fieldImagePullSecrets, pod.Namespace, pod.Spec.ImagePullSecrets[i].Name, "")
	}
	refs.addContainers(pod)
	for i := range pod.Spec.Volumes {
		refs.addVolume(pod, &pod.Spec.Volumes[i])
	}
	refs.addResourceClaims(pod)
	return refs
}

func (r *references) addContainers(pod *corev1.Pod) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		r.addEnv(fieldInitEnv, pod.Namespace, c.Name, c.Env)
		r.addEnvFrom(fieldInitEnvFrom, pod.Namespace, c.Name, c.EnvFrom)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		r.addEnv(fieldEnv, pod.Namespace, c.Name, c.Env)
		r.addEnvFrom(fieldEnvFrom, pod.Namespace, c.Name, c.EnvFrom)
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon
		r.addEnv(fieldEphemeralEnv, pod.Namespace, c.Name, c.Env)
		r.addEnvFrom(fieldEphemeralEnvFrom, pod.Namespace, c.Name, c.EnvFrom)
	}
}

func (r *references) addEnv(f field, namespace, container string, env []corev1.EnvVar) {
	for i := range env {
		from := env[i].ValueFrom
		if from == nil {
			continue
		}
		if from.SecretKeyRef != nil {
			r.add(Secret, f, namespace, from.SecretKeyRef.Name, container)
		}
		if from.ConfigMapKeyRef != nil {
			r.add(ConfigMap, f, namespace, from.ConfigMapKeyRef.Name, container)
		}
	}
}

func (r *references) addEnvFrom(f field, namespace, container string, from []corev1.EnvFromSource) {
	for i := range from {
		if from[i].SecretRef != nil {
			r.add(Secret, f, namespace, from[i].SecretRef.Name, container)
		}
		if from[i].ConfigMapRef != nil {
			r.add(ConfigMap, f, namespace, from[i].ConfigMapRef.Name, container)
		}
	}
}

// addVolume adds the references of a volume. A valid volume has one source; if an
// invalid one has several, the first in this order counts for secrets, as in
// kube-apiserver.
func (r *references) addVolume(pod *corev1.Pod, v *corev1.Volume) {
	ns := pod.Namespace
	secretRef := func(f field, ref *corev1.LocalObjectReference) {
		if ref != nil {
			r.add(Secret, f, ns, ref.Name, v.Name)
		}
	}
	switch {
	case v.AzureFile != nil:
		r.add(Secret, fieldVolumeAzureFile, ns, v.AzureFile.SecretName, v.Name)
	case v.CephFS != nil:
		secretRef(fieldVolumeCephFS, v.CephFS.SecretRef)
	case v.Cinder != nil:
		secretRef(fieldVolumeCinder, v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		secretRef(fieldVolumeFlex, v.FlexVolume.SecretRef)
	case v.Projected != nil:
		r.addProjectedSecrets(ns, v)
	case v.RBD != nil:
		secretRef(fieldVolumeRBD, v.RBD.SecretRef)
	case v.Secret != nil:
		r.add(Secret, fieldVolumeSecret, ns, v.Secret.SecretName, v.Name)
	case v.ScaleIO != nil:
		secretRef(fieldVolumeScaleIO, v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		secretRef(fieldVolumeISCSI, v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		secretRef(fieldVolumeStorageOS, v.StorageOS.SecretRef)
	case v.CSI != nil:
		secretRef(fieldVolumeCSI, v.CSI.NodePublishSecretRef)
	}
	r.addVolumeConfigMaps(ns, v)
	r.addVolumeClaim(pod, v)
}

func (r *references) addProjectedSecrets(namespace string, v *corev1.Volume) {
	for i := range v.Projected.Sources {
		if s := v.Projected.Sources[i].Secret; s != nil {
			r.add(Secret, fieldVolumeProjected, namespace, s.Name, v.Name)
		}
	}
}

func (r *references) addVolumeConfigMaps(namespace string, v *corev1.Volume) {
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if c := v.Projected.Sources[i].ConfigMap; c != nil {
				r.add(ConfigMap, fieldVolumeProjected, namespace, c.Name, v.Name)
			}
		}
	} else if v.ConfigMap != nil {
		r.add(ConfigMap, fieldVolumeConfigMap, namespace, v.ConfigMap.Name, v.Name)
	}
}

// addVolumeClaim adds the claim that a volume names, or the one that is made for a
// generic ephemeral volume, whose name is <pod>-<volume>. Source:
// https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/
func (r *references) addVolumeClaim(pod *corev1.Pod, v *corev1.Volume) {
	if v.PersistentVolumeClaim != nil {
		r.add(PersistentVolumeClaim, fieldVolumeClaim, pod.Namespace, v.PersistentVolumeClaim.ClaimName, v.Name)
	} else if v.Ephemeral != nil {
		r.add(PersistentVolumeClaim, fieldVolumeEphemeral, pod.Namespace, pod.Name+"-"+v.Name, v.Name)
	}
}

// addResourceClaims adds the claims of dynamic resource allocation: named in
// the spec, generated from a template (then its name is in the first status
// entry for it, if there is one yet), or made for extended resources.
// Source: KEP-4381, KEP-5004.
func (r *references) addResourceClaims(pod *corev1.Pod) {
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		switch {
		case claim.ResourceClaimName != nil:
			r.add(ResourceClaim, fieldResourceClaims, pod.Namespace, *claim.ResourceClaimName, claim.Name)
		case claim.ResourceClaimTemplateName != nil:
			if name := generatedClaim(pod, claim.Name); name != nil {
				r.add(ResourceClaim, fieldResourceClaimStatuses, pod.Namespace, *name, claim.Name)
			}
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		r.add(ResourceClaim, fieldExtendedResourceClaim, pod.Namespace, extended.ResourceClaimName, "")
	}
}

func generatedClaim(pod *corev1.Pod, entry string) *string {
	for i := range pod.Status.ResourceClaimStatuses {
		if status := &pod.Status.ResourceClaimStatuses[i]; status.Name == entry {
			return status.ResourceClaimName
		}
	}
	return nil
}
