package inventory

import corev1 "k8s.io/api/core/v1"

// Resources are an amount of CPU, in thousandths of a core, and of memory, in bytes.
type Resources struct{ CPU, Memory int64 }

// ResourcesOf reads a list of resources.
func ResourcesOf(list corev1.ResourceList) Resources {
	return Resources{list.Cpu().MilliValue(), list.Memory().Value()}
}

// Without is what is left of an amount.
func (r Resources) Without(o Resources) Resources {
	return Resources{r.CPU - o.CPU, r.Memory - o.Memory}
}

// Fits reports whether an amount is at most another.
func (r Resources) Fits(in Resources) bool { return r.CPU <= in.CPU && r.Memory <= in.Memory }
