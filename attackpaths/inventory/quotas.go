package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Quota is a ResourceQuota that counts all objects of some kinds in its namespace.
type Quota struct {
	Name
	// Full are the resources of which no more can be created, as "pods" or "count/deployments.apps", sorted.
	Full []string
}

// setQuota adds a quota, or replaces the one of the same name. A quota with scopes is for some pods, and the requests and
// limits of pods are for their authors to choose: neither keeps every pod out.
func (i *Inventory) setQuota(quota *corev1.ResourceQuota) {
	q := Quota{Name: Name{intern(quota.Namespace), quota.Name}}
	delete(i.quotas, q.Name)
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return
	}
	for resource, hard := range quota.Spec.Hard {
		used := quota.Status.Used[resource]
		if Counts(resource) && used.Cmp(hard) >= 0 {
			q.Full = append(q.Full, string(resource))
		}
	}
	if slices.Sort(q.Full); len(q.Full) > 0 {
		i.quotas[q.Name] = q
	}
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
func (i *Inventory) FullQuota(namespace, group, resource string) string {
	count := "count/" + resource
	if group != "" {
		count += "." + group
	}
	full := ""
	for _, q := range i.quotas {
		named := slices.Contains(q.Full, count) || group == "" && slices.Contains(q.Full, resource)
		if q.Namespace == namespace && named && (full == "" || q.Name.Name < full) {
			full = q.Name.Name
		}
	}
	return full
}
