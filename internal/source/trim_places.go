package source

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// An inventory notes where in a pod's lists something is that can be taken away. So what comes
// before that stays in these lists without its content, and what comes after it does not.

// generatedToken begins the names of the volumes that the API server adds to pods: no template has
// them, and their names differ from pod to pod.
const generatedToken = "kube-api-access-"

// podPlaces are the places in the lists of a pod.
type podPlaces struct {
	volumes          []corev1.Volume
	init, containers []corev1.Container
}

// placesOf notes the places of a pod's volumes and containers before it is trimmed.
func placesOf(spec *corev1.PodSpec) podPlaces {
	var p podPlaces
	giving := map[string]bool{}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		named := corev1.Volume{Name: v.Name}
		if v.Projected != nil {
			named.Projected = projectedPlaces(v.Projected)
		}
		if gives(v) {
			giving[v.Name] = true
		}
		p.volumes = append(p.volumes, named)
	}
	p.init, p.containers = containerPlaces(spec.InitContainers, giving), containerPlaces(spec.Containers, giving)
	return p
}

// gives reports whether a volume can be taken from a template because of what it gives.
func gives(v *corev1.Volume) bool {
	if len(v.Name) >= len(generatedToken) && v.Name[:len(generatedToken)] == generatedToken {
		return false
	}
	source, kept := trimVolumeSource(v.VolumeSource.DeepCopy())
	source.ConfigMap, source.PersistentVolumeClaim, source.Ephemeral = nil, nil, nil
	return v.HostPath != nil || kept && source != corev1.VolumeSource{}
}

func projectedPlaces(v *corev1.ProjectedVolumeSource) *corev1.ProjectedVolumeSource {
	copied := v.DeepCopy()
	for i := range copied.Sources {
		one := trimProjected(&corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{copied.Sources[i]}})
		copied.Sources[i] = corev1.VolumeProjection{}
		if len(one.Sources) > 0 {
			copied.Sources[i] = one.Sources[0]
		}
	}
	copied.Sources = untilLast(copied.Sources, func(s corev1.VolumeProjection) bool { return s != corev1.VolumeProjection{} })
	return &corev1.ProjectedVolumeSource{Sources: copied.Sources}
}

// untilLast cuts a list after the last entry that counts.
func untilLast[T any](list []T, counts func(T) bool) []T {
	for i, entry := range slices.Backward(list) {
		if counts(entry) {
			return list[:i+1]
		}
	}
	return nil
}

func containerPlaces(containers []corev1.Container, giving map[string]bool) []corev1.Container {
	var places []corev1.Container
	for i := range containers {
		c := &containers[i]
		named := corev1.Container{Name: c.Name}
		for _, m := range c.VolumeMounts {
			mount := corev1.VolumeMount{Name: m.Name, ReadOnly: m.ReadOnly, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr}
			if !giving[m.Name] {
				mount = corev1.VolumeMount{}
			}
			named.VolumeMounts = append(named.VolumeMounts, mount)
		}
		named.VolumeMounts = untilLast(named.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name != "" })
		for _, e := range c.Env {
			one := corev1.EnvVar{}
			if kept := trimEnv([]corev1.EnvVar{*e.DeepCopy()}); len(kept) > 0 {
				one = kept[0]
			}
			named.Env = append(named.Env, one)
		}
		named.Env = untilLast(named.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil })
		for _, e := range c.EnvFrom {
			one := corev1.EnvFromSource{}
			if kept := trimEnvFrom([]corev1.EnvFromSource{*e.DeepCopy()}); len(kept) > 0 {
				one = kept[0]
			}
			named.EnvFrom = append(named.EnvFrom, one)
		}
		named.EnvFrom = untilLast(named.EnvFrom, func(e corev1.EnvFromSource) bool { return e != corev1.EnvFromSource{} })
		places = append(places, named)
	}
	return places
}

// restore puts the lists of a trimmed pod in their places.
func (p podPlaces) restore(spec *corev1.PodSpec) {
	trimmed := map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		trimmed[v.Name] = v
	}
	for i := range p.volumes {
		v := &p.volumes[i]
		kept, ok := trimmed[v.Name]
		if !ok {
			*v = corev1.Volume{}
			continue
		}
		if kept.Projected != nil && v.Projected != nil {
			kept.Projected = v.Projected
		}
		*v = kept
	}
	spec.Volumes = untilLast(p.volumes, func(v corev1.Volume) bool { return v.VolumeSource != corev1.VolumeSource{} })
	spec.InitContainers = restoredContainers(spec.InitContainers, p.init)
	spec.Containers = restoredContainers(spec.Containers, p.containers)
}

func restoredContainers(trimmed, places []corev1.Container) []corev1.Container {
	for i := range places {
		for j := range trimmed {
			if trimmed[j].Name == places[i].Name {
				places[i].SecurityContext = trimmed[j].SecurityContext
			}
		}
	}
	counts := func(c corev1.Container) bool {
		return c.SecurityContext != nil || len(c.VolumeMounts)+len(c.Env)+len(c.EnvFrom) > 0
	}
	for i := range places {
		if !counts(places[i]) {
			places[i] = corev1.Container{}
		}
	}
	return untilLast(places, counts)
}
