// Package extendedtoleration lets pods that request an extended resource run on the
// nodes that are reserved for it.
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

// Tolerations returns the tolerations that ExtendedResourceToleration gives a pod,
// and whether they differ from the pod's. It does not change the pod.
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

// Reading is the relevant part of a pod. Its memory depends only on the number of
// extended resources and tolerations of them, not on the size of the pod. The zero
// value is the reading of an empty pod.
type Reading struct {
	requested map[string]struct{}
	// present has, by key, the tolerations that an extended resource would get.
	present     map[string][]present
	tolerations int
}

// present is a toleration of the pod.
type present struct {
	index int
	// timed is true if it has tolerationSeconds, which the wanted one does not have.
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
	// Index is the index of the replaced toleration, or AtTheEnd.
	Index      int
	Toleration corev1.Toleration
}

// Changes returns the changes to the pod's tolerations: first the replaced ones, in
// their order, then the added ones, by the names of the resources.
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

// isExtended reports whether a resource is an extended one: not one of Kubernetes or
// of quotas, and with a qualified name that quotas can use.
func isExtended(name string) bool {
	const native, quota = "kubernetes.io/", "requests."
	return strings.Contains(name, "/") && !strings.Contains(name, native) && !strings.HasPrefix(name, quota) &&
		len(validation.IsQualifiedName(quota+name)) == 0
}

func toleration(resource string) corev1.Toleration {
	return corev1.Toleration{Key: resource, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}
