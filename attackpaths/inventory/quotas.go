package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fullResources lists what a quota lets no more objects be created of, as "pods" or "count/deployments.apps". A quota with scopes
// is for some pods, and the requests and limits of pods are for their authors to choose: neither keeps every pod out.
func fullResources(quota *corev1.ResourceQuota) []string {
	full := []string{}
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return full
	}
	for resource, hard := range quota.Spec.Hard {
		if used := quota.Status.Used[resource]; Counts(resource) && used.Cmp(hard) >= 0 {
			full = append(full, string(resource))
		}
	}
	return full
}

// Counts reports whether a resource of a quota is a number of objects.
func Counts(resource corev1.ResourceName) bool {
	switch resource {
	case corev1.ResourcePods, corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceReplicationControllers:
		return true
	}
	return strings.HasPrefix(string(resource), "count/")
}

// FullQuota is a quota that lets no more objects of a resource be created in a namespace; empty if there is none.
func (i *Inventory) FullQuota(namespace, group, resource string) (quota string) {
	counted := schema.GroupResource{Group: group, Resource: resource}.String()
	for name, r := range i.records["ResourceQuota"] {
		named := slices.ContainsFunc(r.([]string), func(full string) bool { return full == counted || full == "count/"+counted })
		if name.Namespace == namespace && named && (quota == "" || name.Name < quota) {
			quota = name.Name
		}
	}
	return quota
}
