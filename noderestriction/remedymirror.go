package noderestriction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// dropReferences removes what a mirror pod must not have.
func (d *draft) dropReferences(Answer) {
	pod, ok := d.req.Object.(*corev1.Pod)
	if !ok {
		return
	}
	spec := &pod.Spec
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	spec.ImagePullSecrets = slices.DeleteFunc(spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name != "" })
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		dropped[v.Name] = d.volumeRefers(v)
		return dropped[v.Name]
	})
	claims := d.features.Minor() >= claimsSince
	if claims {
		spec.ResourceClaims = nil
	}
	drop := func(env *[]corev1.EnvVar, from *[]corev1.EnvFromSource, mounts *[]corev1.VolumeMount, r *corev1.ResourceRequirements) {
		*env = slices.DeleteFunc(*env, func(v corev1.EnvVar) bool {
			return environmentReference(environment{env: []corev1.EnvVar{v}}) != ""
		})
		*from = slices.DeleteFunc(*from, func(s corev1.EnvFromSource) bool {
			return environmentReference(environment{envFrom: []corev1.EnvFromSource{s}}) != ""
		})
		*mounts = slices.DeleteFunc(*mounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
		if claims {
			r.Claims = nil
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			drop(&c.Env, &c.EnvFrom, &c.VolumeMounts, &c.Resources)
		}
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		drop(&c.Env, &c.EnvFrom, &c.VolumeMounts, &c.Resources)
	}
}

// claimsSince is the minor since which mirror pods must not have resource claims.
const claimsSince kubeversion.Minor = 32

// volumeRefers reports whether a mirror pod must not have the volume.
func (d *draft) volumeRefers(v corev1.Volume) bool {
	alone := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{v}}}
	if podReference(alone) != "" {
		return true
	}
	if d.features.Minor() < 34 {
		return volumeReferenceBefore34(alone) != ""
	}
	return volumeReference(alone) != ""
}
