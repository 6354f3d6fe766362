package generate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimStatusMutations change the parts of a pod's status about resource claims.
func claimStatusMutations() []mutation {
	return slices.Concat(claimNameMutations(), extendedClaimMutations(), allocatableMutations())
}

func claimNameMutations() []mutation {
	// both gives both pods the same entry, then changes the new one's.
	both := func(change func(*draft, *corev1.PodResourceClaimStatus)) func(*draft) {
		return func(d *draft) {
			entry := corev1.PodResourceClaimStatus{Name: "c", ResourceClaimName: new("claim")}
			d.oldPod.Status.ResourceClaimStatuses = append(d.oldPod.Status.ResourceClaimStatuses, entry)
			d.pod.Status.ResourceClaimStatuses = append(d.pod.Status.ResourceClaimStatuses, *entry.DeepCopy())
			change(d, &d.pod.Status.ResourceClaimStatuses[len(d.pod.Status.ResourceClaimStatuses)-1])
		}
	}
	return []mutation{
		{"the same claim", Allowed, both(func(*draft, *corev1.PodResourceClaimStatus) {})},
		{"claim renamed", Refused, both(func(_ *draft, s *corev1.PodResourceClaimStatus) { s.Name = "d" })},
		{"claim of another name", Refused, both(func(_ *draft, s *corev1.PodResourceClaimStatus) { s.ResourceClaimName = new("claim0") })},
		{"claim with an empty name", Refused, both(func(_ *draft, s *corev1.PodResourceClaimStatus) { s.ResourceClaimName = new("") })},
		{"claim without a name", Refused, both(func(_ *draft, s *corev1.PodResourceClaimStatus) { s.ResourceClaimName = nil })},
		{"claim with a name instead of none", Refused, both(func(d *draft, _ *corev1.PodResourceClaimStatus) {
			old := d.oldPod.Status.ResourceClaimStatuses
			old[len(old)-1].ResourceClaimName = nil
		})},
		{"claim added", Refused, func(d *draft) {
			d.pod.Status.ResourceClaimStatuses = append(d.pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: "added"})
		}},
		{"claim removed", Refused, func(d *draft) {
			d.oldPod.Status.ResourceClaimStatuses = append(d.oldPod.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: "removed"})
		}},
		{"claims reordered", Refused, both(func(d *draft, _ *corev1.PodResourceClaimStatus) {
			first := corev1.PodResourceClaimStatus{Name: "first"}
			d.oldPod.Status.ResourceClaimStatuses = append(d.oldPod.Status.ResourceClaimStatuses, first)
			d.pod.Status.ResourceClaimStatuses = append([]corev1.PodResourceClaimStatus{first}, d.pod.Status.ResourceClaimStatuses...)
		})},
		{"empty claims instead of none", Allowed, func(d *draft) {
			d.oldPod.Status.ResourceClaimStatuses, d.pod.Status.ResourceClaimStatuses = nil, []corev1.PodResourceClaimStatus{}
		}},
	}
}

func extendedClaimMutations() []mutation {
	mapping := func() corev1.ContainerExtendedResourceRequest {
		return corev1.ContainerExtendedResourceRequest{ContainerName: "main", ResourceName: "example.com/gpu", RequestName: "r"}
	}
	both := func(change func(*corev1.PodExtendedResourceClaimStatus)) func(*draft) {
		return func(d *draft) {
			old := &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "claim", RequestMappings: []corev1.ContainerExtendedResourceRequest{mapping()},
			}
			d.oldPod.Status.ExtendedResourceClaimStatus = old
			d.pod.Status.ExtendedResourceClaimStatus = old.DeepCopy()
			change(d.pod.Status.ExtendedResourceClaimStatus)
		}
	}
	return []mutation{
		{"the same extended claim", Allowed, both(func(*corev1.PodExtendedResourceClaimStatus) {})},
		{"extended claim of another name", Refused, both(func(s *corev1.PodExtendedResourceClaimStatus) { s.ResourceClaimName = "other" })},
		{
			"extended claim of another container", Refused,
			both(func(s *corev1.PodExtendedResourceClaimStatus) { s.RequestMappings[0].ContainerName = "x" }),
		},
		{
			"extended claim of another resource", Refused,
			both(func(s *corev1.PodExtendedResourceClaimStatus) { s.RequestMappings[0].ResourceName = "x" }),
		},
		{
			"extended claim of another request", Refused,
			both(func(s *corev1.PodExtendedResourceClaimStatus) { s.RequestMappings[0].RequestName = "x" }),
		},
		{"extended claim with another mapping", Refused, both(func(s *corev1.PodExtendedResourceClaimStatus) {
			s.RequestMappings = append(s.RequestMappings, mapping())
		})},
		{"extended claim without mappings", Refused, both(func(s *corev1.PodExtendedResourceClaimStatus) { s.RequestMappings = nil })},
		{"empty mappings instead of none", Allowed, func(d *draft) {
			d.oldPod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "claim"}
			d.pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "claim", RequestMappings: []corev1.ContainerExtendedResourceRequest{},
			}
		}},
		{"extended claim added", Refused, func(d *draft) {
			d.oldPod.Status.ExtendedResourceClaimStatus = nil
			d.pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{}
		}},
		{"extended claim removed", Refused, func(d *draft) {
			d.oldPod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{}
			d.pod.Status.ExtendedResourceClaimStatus = nil
		}},
	}
}

func allocatableMutations() []mutation {
	amount := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	both := func(change func(*corev1.NodeAllocatableResourceClaimStatus)) func(*draft) {
		return func(d *draft) {
			entry := corev1.NodeAllocatableResourceClaimStatus{
				ResourceClaimName: "claim", Containers: []string{"a", "b"},
				Mapping:  []corev1.NodeAllocatableMappedResources{{Name: corev1.ResourceCPU, Quantity: amount("1")}},
				Overhead: []corev1.NodeAllocatableOverheadResources{{Name: corev1.ResourceMemory, PerPod: amount("1Gi")}},
			}
			d.oldPod.Status.NodeAllocatableResourceClaimStatuses = append(d.oldPod.Status.NodeAllocatableResourceClaimStatuses, entry)
			d.pod.Status.NodeAllocatableResourceClaimStatuses = append(d.pod.Status.NodeAllocatableResourceClaimStatuses, *entry.DeepCopy())
			change(&d.pod.Status.NodeAllocatableResourceClaimStatuses[len(d.pod.Status.NodeAllocatableResourceClaimStatuses)-1])
		}
	}
	type status = corev1.NodeAllocatableResourceClaimStatus
	return []mutation{
		{"the same allocatable claim", Allowed, both(func(*status) {})},
		{"allocatable claim of another name", Refused, both(func(s *status) { s.ResourceClaimName = "other" })},
		{"allocatable claim of other containers", Refused, both(func(s *status) { s.Containers = []string{"b", "a"} })},
		{"allocatable claim of no containers", Refused, both(func(s *status) { s.Containers = nil })},
		{"mapped resource of another name", Refused, both(func(s *status) { s.Mapping[0].Name = "x" })},
		{"mapped quantity changed", Refused, both(func(s *status) { s.Mapping[0].Quantity = amount("2") })},
		{"mapped quantity removed", Refused, both(func(s *status) { s.Mapping[0].Quantity = nil })},
		{"mapped quantity written differently", Allowed, both(func(s *status) { s.Mapping[0].Quantity = amount("1000m") })},
		{"mapping removed", Refused, both(func(s *status) { s.Mapping = nil })},
		{"overhead of another name", Refused, both(func(s *status) { s.Overhead[0].Name = "x" })},
		{"overhead for each pod changed", Refused, both(func(s *status) { s.Overhead[0].PerPod = amount("2Gi") })},
		{"overhead for each pod written differently", Allowed, both(func(s *status) { s.Overhead[0].PerPod = amount("1024Mi") })},
		{"overhead for each container added", Refused, both(func(s *status) { s.Overhead[0].PerContainer = amount("0") })},
		{"overhead removed", Refused, both(func(s *status) { s.Overhead = nil })},
		{"allocatable claim added", Refused, func(d *draft) {
			d.pod.Status.NodeAllocatableResourceClaimStatuses = append(d.pod.Status.NodeAllocatableResourceClaimStatuses, status{})
		}},
	}
}
