package inventory

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// SetPlanned adds a pod that no scheduler has bound yet: one that was just created, or one for all that
// the controller of a workload will make. Workload is zero for the former. Such a pod may come to each
// node on which its placement, its requests included, allows it.
func (i *Inventory) SetPlanned(pod *corev1.Pod, w Workload) *Pod {
	p := NewPlanned(pod, w)
	i.setPod(p)
	return p
}

// NewPlanned reads such a pod without adding it.
func NewPlanned(pod *corev1.Pod, w Workload) *Pod {
	p := newPod(pod)
	p.Planned, p.Pending, p.Running, p.Workload = true, false, false, w
	p.Placement = placementOf(&pod.Spec, RequestsOf(&pod.Spec))
	return p
}

// Unbind makes a pod wait for a node, as the one that its controller makes for it when its node is gone.
func (i *Inventory) Unbind(p *Pod) {
	waiting := *p
	waiting.Node, waiting.Planned, waiting.Ended, waiting.Pending, waiting.Running = "", true, false, false, false
	i.setPod(&waiting)
}

// RequestsOf is what a pod needs of a node. The API server takes a limit of a container for a request that is not given.
func RequestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec}
	for _, containers := range [...]*[]corev1.Container{&pod.Spec.InitContainers, &pod.Spec.Containers} {
		*containers = slices.Clone(*containers)
		for i := range *containers {
			resources := &(*containers)[i].Resources
			requests := maps.Clone(resources.Limits)
			if requests == nil {
				continue
			}
			maps.Copy(requests, resources.Requests)
			resources.Requests = requests
		}
	}
	all := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(all, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return all
}

// Like reports whether a pod that runs is as one that its workload would make now, in all that an
// inventory has, but for the name of the workload. What the API server adds to pods does not count: tolerations of failing nodes, and the
// pull secrets of the service account.
func (p *Pod) Like(planned *Pod) bool {
	a, b := p.Placement.spec(), planned.Placement.spec()
	a.Tolerations, b.Tolerations = lasting(a.Tolerations), lasting(b.Tolerations)
	return placementOf(&a, nil) == placementOf(&b, nil) && p.ServiceAccount == planned.ServiceAccount &&
		slices.Equal(p.Audiences, planned.Audiences) && slices.Equal(p.Secrets, planned.Secrets) &&
		slices.Equal(p.VolumeSecrets, planned.VolumeSecrets) && slices.Equal(p.Escapes, planned.Escapes) &&
		slices.Equal(p.mounts, planned.mounts) && p.RuntimeClass == planned.RuntimeClass && !p.Ephemeral
}

// lasting leaves out the tolerations that admission and the controller of DaemonSets add.
func lasting(all []corev1.Toleration) []corev1.Toleration {
	return slices.DeleteFunc(slices.Clone(all), func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpExists && slices.Contains([]string{
			corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
			corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable, corev1.TaintNodeNetworkUnavailable,
		}, t.Key)
	})
}
