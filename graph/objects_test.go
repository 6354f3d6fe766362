package graph_test

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newPod returns a pod in namespace shop; node is empty for an unbound one.
func newPod(name, node string, parts ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	pod.Spec.NodeName = node
	for _, part := range parts {
		part(pod)
	}
	return pod
}

func inNamespace(namespace string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Namespace = namespace }
}

func mirror(pod *corev1.Pod) {
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "of-a-static-pod"}
}

func withServiceAccount(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = name }
}

// withVolume adds a volume with the given name and source.
func withVolume(name string, source corev1.VolumeSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

func withSecret(name string) func(*corev1.Pod) {
	return withVolume("secret-"+name, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}})
}

func withConfigMap(name string) func(*corev1.Pod) {
	return withVolume("config-"+name, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local(name)}})
}

func withClaim(name string) func(*corev1.Pod) {
	return withVolume("claim-"+name, corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	})
}

// withEnv adds a container with variables.
func withEnv(container string, env ...corev1.EnvVar) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Env: env})
	}
}

func withEphemeralContainer(name string, env ...corev1.EnvVar) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Env: env},
		})
	}
}

func fromSecret(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local(name)}}
}

func fromConfigMap(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local(name)}}
}

func withEnvFrom(container string, from ...corev1.EnvFromSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, EnvFrom: from})
	}
}

func withInitContainer(c corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.InitContainers = append(pod.Spec.InitContainers, c) }
}

func withEphemeralEnvFrom(container string, from ...corev1.EnvFromSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: container, EnvFrom: from},
		}}
	}
}

func withProjection(sources ...corev1.VolumeProjection) func(*corev1.Pod) {
	return withVolume("data", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
}

func withResourceClaims(claims ...corev1.PodResourceClaim) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.ResourceClaims = claims }
}

func optional(env corev1.EnvVar) corev1.EnvVar {
	env.ValueFrom.SecretKeyRef.Optional = new(true)
	return env
}

func localRef(name string) *corev1.LocalObjectReference {
	ref := local(name)
	return &ref
}

func local(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func secretEnv(secret string) corev1.EnvVar {
	return corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(secret), Key: "password"},
	}}
}

func configEnv(configMap string) corev1.EnvVar {
	return corev1.EnvVar{Name: "MODE", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(configMap), Key: "mode"},
	}}
}

// newVolume returns a persistent volume bound to a claim in namespace shop;
// claim is empty for one that is not bound.
func newVolume(name, claim string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.PersistentVolumeSource = source
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
	}
	return pv
}

func stageSecret(namespace, name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{NodeStageSecretRef: secretIn(namespace, name)}}
}

func secretIn(namespace, name string) *corev1.SecretReference {
	return &corev1.SecretReference{Namespace: namespace, Name: name}
}

func newAttachment(name, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}
}

func newSlice(name string, node *string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{NodeName: node}}
}

func newRequest(name, node string) *certificatesv1.PodCertificateRequest {
	return &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(node)},
	}
}
