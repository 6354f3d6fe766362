package inventory

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are an amount of CPU, in thousandths of a core, and of memory, in bytes.
type Resources struct{ CPU, Memory int64 }

// Add adds an amount.
func (r *Resources) Add(o Resources) { r.CPU, r.Memory = r.CPU+o.CPU, r.Memory+o.Memory }

// Fits reports whether an amount is at most another.
func (r Resources) Fits(in Resources) bool { return r.CPU <= in.CPU && r.Memory <= in.Memory }

func resourcesOf(list corev1.ResourceList) Resources {
	return Resources{list.Cpu().MilliValue(), list.Memory().Value()}
}

// RequestsOf lists the CPU and memory that a pod requests: its own amounts, or the sum of its
// containers', and no less than a container that runs before the others.
func RequestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	r := requestsOf(spec)
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(r.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
	}
}

func requestsOf(spec *corev1.PodSpec) Resources {
	if spec.Resources != nil && len(spec.Resources.Requests) > 0 {
		return resourcesOf(spec.Resources.Requests)
	}
	var sum Resources
	for i := range spec.Containers {
		sum.Add(resourcesOf(spec.Containers[i].Resources.Requests))
	}
	first := sum
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		one := resourcesOf(c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sum.Add(one)
			first.Add(one)
			continue
		}
		first.CPU, first.Memory = max(first.CPU, one.CPU), max(first.Memory, one.Memory)
	}
	return Resources{max(sum.CPU, first.CPU), max(sum.Memory, first.Memory)}
}
