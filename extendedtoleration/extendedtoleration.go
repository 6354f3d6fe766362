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
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Tolerations returns the tolerations that ExtendedResourceToleration makes of a
// pod, and whether they differ from the pod's. The pod stays as it is.
func Tolerations(pod *corev1.Pod) (result []corev1.Toleration, changed bool) {
	result = slices.Clone(pod.Spec.Tolerations)
	for _, resource := range extendedResources(pod) {
		result = tolerate(result, resource)
	}
	return result, !equality.Semantic.DeepEqual(result, pod.Spec.Tolerations)
}

// extendedResources lists what the pod's containers request, sorted.
func extendedResources(pod *corev1.Pod) []string {
	found := map[string]struct{}{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range c.Resources.Requests {
			if isExtended(string(name)) {
				found[string(name)] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isExtended reports whether a resource is neither one of Kubernetes nor a
// quota's, and has a name of the form that quotas can have.
func isExtended(name string) bool {
	const native, quota = "kubernetes.io/", "requests."
	return strings.Contains(name, "/") && !strings.Contains(name, native) && !strings.HasPrefix(name, quota) &&
		len(validation.IsQualifiedName(quota+name)) == 0
}

// tolerate puts the toleration in the place of each that means the same, or at
// the end.
func tolerate(tolerations []corev1.Toleration, resource string) []corev1.Toleration {
	wanted := corev1.Toleration{Key: resource, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	found := false
	for i := range tolerations {
		if wanted.MatchToleration(&tolerations[i]) {
			tolerations[i], found = wanted, true
		}
	}
	if found {
		return tolerations
	}
	return append(tolerations, wanted)
}
