// Package extendedtoleration lets pods that ask for an extended resource onto
// the nodes that are kept for it.
//
// Nodes with special devices are tainted with the name of the resource that
// they offer, so that other pods stay away. A pod whose containers or init
// containers request example.com/gpu gets a toleration with that key, operator
// Exists and effect NoSchedule.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration
package extendedtoleration

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Tolerations returns the tolerations that ExtendedResourceToleration makes of a
// pod, and whether they differ from the pod's. The pod stays as it is.
func Tolerations(pod *corev1.Pod) (result []corev1.Toleration, changed bool) {
	var r Reading
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range c.Resources.Requests {
			r.Request(string(name))
		}
	}
	for i := range pod.Spec.Tolerations {
		r.Tolerate(&pod.Spec.Tolerations[i])
	}
	result = slices.Clone(pod.Spec.Tolerations)
	changes := r.Changes()
	for _, c := range changes {
		if c.Index == AtTheEnd {
			result = append(result, c.Toleration)
		} else {
			result[c.Index] = c.Toleration
		}
	}
	return result, len(changes) > 0
}

// Reading is what of a pod counts. It takes as much memory as there are extended
// resources and tolerations for such, however large the pod is. The zero value is
// that of an empty pod.
type Reading struct {
	requested map[string]struct{}
	// present has, by key, the tolerations that an extended resource would get.
	present     map[string][]present
	tolerations int
}

// present is a toleration of the pod.
type present struct {
	index int
	// timed tells that it ends after some seconds, unlike the one wanted.
	timed bool
}

// Request adds a resource that a container or init container requests.
func (r *Reading) Request(resource string) {
	if _, known := r.requested[resource]; known || !isExtended(resource) {
		return
	}
	if r.requested == nil {
		r.requested = map[string]struct{}{}
	}
	r.requested[resource] = struct{}{}
}

// Tolerate adds the next of the pod's tolerations.
func (r *Reading) Tolerate(t *corev1.Toleration) {
	index := r.tolerations
	r.tolerations++
	if wanted := toleration(t.Key); !wanted.MatchToleration(t) || !isExtended(t.Key) {
		return
	}
	if r.present == nil {
		r.present = map[string][]present{}
	}
	r.present[t.Key] = append(r.present[t.Key], present{index, t.TolerationSeconds != nil})
}

// Len is the number of the pod's tolerations.
func (r *Reading) Len() int { return r.tolerations }

// AtTheEnd is the index of a toleration that is added.
const AtTheEnd = -1

// Change writes one toleration.
type Change struct {
	// Index is that of the toleration which is replaced, or AtTheEnd.
	Index      int
	Toleration corev1.Toleration
}

// Changes are what makes the pod's tolerations those that it should have: in place
// of each toleration that means the same, in their order, and then at the end, by
// the names of the resources.
func (r *Reading) Changes() []Change {
	var replaced, added []Change
	for _, resource := range slices.Sorted(maps.Keys(r.requested)) {
		same := r.present[resource]
		if len(same) == 0 {
			added = append(added, Change{AtTheEnd, toleration(resource)})
		}
		for _, p := range same {
			if p.timed {
				replaced = append(replaced, Change{p.index, toleration(resource)})
			}
		}
	}
	slices.SortFunc(replaced, func(a, b Change) int { return cmp.Compare(a.Index, b.Index) })
	return append(replaced, added...)
}

// isExtended reports whether a resource is neither one of Kubernetes nor a
// quota's, and has a name of the form that quotas can have.
func isExtended(name string) bool {
	const native, quota = "kubernetes.io/", "requests."
	return strings.Contains(name, "/") && !strings.Contains(name, native) && !strings.HasPrefix(name, quota) &&
		len(validation.IsQualifiedName(quota+name)) == 0
}

func toleration(resource string) corev1.Toleration {
	return corev1.Toleration{Key: resource, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}
