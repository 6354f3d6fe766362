package noderestriction

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podReference describes an API object to which the pod refers other than by the kind
// of a volume: its service account, or a secret or config map by name. It is empty if
// there is none.
func podReference(pod *corev1.Pod) string {
	if serviceAccountName(pod) != "" {
		return "a service account (spec.serviceAccountName)"
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		if s.Name != "" {
			return "secrets (spec.imagePullSecrets)"
		}
	}
	for _, c := range containersOf(pod) {
		if what := environmentReference(c); what != "" {
			return what
		}
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; hasSecretRef(&v.VolumeSource) {
			return fmt.Sprintf("secrets (secretRef of spec.volumes[name=%q])", v.Name)
		}
	}
	return ""
}

// serviceAccountName returns the field, or its deprecated alias.
func serviceAccountName(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName != "" {
		return pod.Spec.ServiceAccountName
	}
	return pod.Spec.DeprecatedServiceAccount
}

// environment has the sources of the variables of a container of any kind.
type environment struct {
	container string
	env       []corev1.EnvVar
	envFrom   []corev1.EnvFromSource
}

func containersOf(pod *corev1.Pod) []environment {
	var all []environment
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, environment{c.Name, c.Env, c.EnvFrom})
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, environment{c.Name, c.Env, c.EnvFrom})
	}
	return all
}

func environmentReference(e environment) string {
	for _, from := range e.envFrom {
		switch {
		case from.SecretRef != nil && from.SecretRef.Name != "":
			return fmt.Sprintf("secrets (envFrom of container %q)", e.container)
		case from.ConfigMapRef != nil && from.ConfigMapRef.Name != "":
			return fmt.Sprintf("config maps (envFrom of container %q)", e.container)
		}
	}
	for _, v := range e.env {
		switch from := v.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil && from.SecretKeyRef.Name != "":
			return fmt.Sprintf("secrets (env of container %q)", e.container)
		case from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name != "":
			return fmt.Sprintf("config maps (env of container %q)", e.container)
		}
	}
	return ""
}

// hasSecretRef reports whether a volume that needs no other API object names a secret
// for its mount.
func hasSecretRef(v *corev1.VolumeSource) bool {
	var refs []*corev1.LocalObjectReference
	if v.CephFS != nil {
		refs = append(refs, v.CephFS.SecretRef)
	}
	if v.Cinder != nil {
		refs = append(refs, v.Cinder.SecretRef)
	}
	if v.FlexVolume != nil {
		refs = append(refs, v.FlexVolume.SecretRef)
	}
	if v.RBD != nil {
		refs = append(refs, v.RBD.SecretRef)
	}
	if v.ScaleIO != nil {
		refs = append(refs, v.ScaleIO.SecretRef)
	}
	if v.ISCSI != nil {
		refs = append(refs, v.ISCSI.SecretRef)
	}
	if v.StorageOS != nil {
		refs = append(refs, v.StorageOS.SecretRef)
	}
	if v.CSI != nil {
		refs = append(refs, v.CSI.NodePublishSecretRef)
	}
	return slices.ContainsFunc(refs, func(r *corev1.LocalObjectReference) bool { return r != nil && r.Name != "" })
}

// VolumeReferences returns what the rules about mirror pods say of a volume, by rule; empty if they accept it. A rule
// refuses a pod for the first volume that it does not accept. So decisions do not depend on volumes that are
// accepted, nor on volumes after another one of which the rules say the same.
func VolumeReferences(v *corev1.Volume) [3]string {
	all := [3]string{"", apiReference(&v.VolumeSource), apiReferenceBefore34(&v.VolumeSource)}
	if hasSecretRef(&v.VolumeSource) {
		all[0] = "secrets"
	}
	return all
}

// volumeReference describes the first volume of a kind that needs the API, or of an
// unknown kind.
func volumeReference(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if what := apiReference(&v.VolumeSource); what != "" {
			return fmt.Sprintf("%s (spec.volumes[name=%q])", what, v.Name)
		}
	}
	return ""
}

// apiReference describes why a volume needs the API; empty for a kind that does not.
func apiReference(v *corev1.VolumeSource) string {
	what := sourceReference(v)
	switch {
	case what != "":
		return what
	case v.Projected != nil:
		return projectionReference(v.Projected)
	case !needsNoAPI(v):
		return "unknown kinds of volumes"
	}
	return ""
}

// sourceReference describes the API objects that a volume needs.
func sourceReference(v *corev1.VolumeSource) string {
	switch {
	case v.ConfigMap != nil:
		return "config maps"
	case v.Secret != nil, v.AzureFile != nil:
		return "secrets"
	case v.CSI != nil:
		return "CSI drivers"
	case v.Glusterfs != nil:
		return "endpoints"
	case v.PersistentVolumeClaim != nil, v.Ephemeral != nil:
		return "persistent volume claims"
	}
	return ""
}

func projectionReference(projected *corev1.ProjectedVolumeSource) string {
	for _, s := range projected.Sources {
		switch {
		case s.ConfigMap != nil:
			return "projected config maps"
		case s.Secret != nil:
			return "projected secrets"
		case s.ServiceAccountToken != nil:
			return "projected service account tokens"
		case s.ClusterTrustBundle != nil:
			return "projected cluster trust bundles"
		case s.PodCertificate != nil:
			return "projected pod certificates"
		case s.DownwardAPI == nil:
			return "unknown kinds of projections"
		}
	}
	return ""
}

// needsNoAPI reports whether a volume is of a kind that a kubelet mounts without the
// API.
func needsNoAPI(v *corev1.VolumeSource) bool {
	onNode := v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil || v.Image != nil || v.GitRepo != nil || v.FlexVolume != nil
	cloud := v.AWSElasticBlockStore != nil || v.AzureDisk != nil || v.Cinder != nil || v.GCEPersistentDisk != nil ||
		v.PhotonPersistentDisk != nil || v.VsphereVolume != nil
	network := v.CephFS != nil || v.FC != nil || v.Flocker != nil || v.ISCSI != nil || v.NFS != nil || v.PortworxVolume != nil ||
		v.Quobyte != nil || v.RBD != nil || v.ScaleIO != nil || v.StorageOS != nil
	return onNode || cloud || network
}

// volumeReferenceBefore34 describes the first volume that refers to an object by
// name.
func volumeReferenceBefore34(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if what := apiReferenceBefore34(&v.VolumeSource); what != "" {
			return fmt.Sprintf("%s (spec.volumes[name=%q])", what, v.Name)
		}
	}
	return ""
}

func apiReferenceBefore34(v *corev1.VolumeSource) string {
	switch {
	case v.Secret != nil && v.Secret.SecretName != "", v.AzureFile != nil && v.AzureFile.SecretName != "":
		return "secrets"
	case v.ConfigMap != nil && v.ConfigMap.Name != "":
		return "config maps"
	case v.PersistentVolumeClaim != nil:
		return "persistent volume claims"
	case v.Projected != nil:
		return projectionReferenceBefore34(v.Projected)
	}
	return ""
}

func projectionReferenceBefore34(projected *corev1.ProjectedVolumeSource) string {
	for _, s := range projected.Sources {
		switch {
		case s.ConfigMap != nil && s.ConfigMap.Name != "":
			return "projected config maps"
		case s.Secret != nil && s.Secret.Name != "":
			return "projected secrets"
		case s.ClusterTrustBundle != nil:
			return "projected cluster trust bundles"
		}
	}
	return ""
}
