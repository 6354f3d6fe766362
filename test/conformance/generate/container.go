package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// containers draws init, regular and ephemeral containers with environments.
func (b *podBuilder) containers() {
	for i := range b.r.IntN(2) {
		b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, b.container("init-"+strconv.Itoa(i)))
	}
	for i := range 1 + b.r.IntN(2) {
		b.pod.Spec.Containers = append(b.pod.Spec.Containers, b.container("main-"+strconv.Itoa(i)))
	}
	if chance(b.r, 15) {
		b.ephemeralContainer()
	}
}

// ephemeralContainer adds one more ephemeral container.
func (b *podBuilder) ephemeralContainer() {
	c := b.container("debug-" + strconv.Itoa(len(b.pod.Spec.EphemeralContainers)))
	b.pod.Spec.EphemeralContainers = append(b.pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom},
	})
}

func (b *podBuilder) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/" + name}
	for chance(b.r, 35) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "E" + strconv.Itoa(len(c.Env)), ValueFrom: b.envVarSource()})
	}
	for chance(b.r, 25) {
		c.EnvFrom = append(c.EnvFrom, b.envFromSource())
	}
	return c
}

// envVarSource draws where a variable's value comes from; nil is a literal.
func (b *podBuilder) envVarSource() *corev1.EnvVarSource {
	switch b.r.IntN(6) {
	case 0:
		return nil
	case 1:
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}
	case 2:
		return &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: b.name(), Path: "f", Key: "k"}}
	case 3:
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("configmaps")}, Key: "k",
		}}
	default:
		optional := chance(b.r, 50)
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("secrets")}, Key: "k", Optional: &optional,
		}}
	}
}

func (b *podBuilder) envFromSource() corev1.EnvFromSource {
	if chance(b.r, 50) {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("secrets")},
		}}
	}
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("configmaps")},
	}}
}
