package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// resourceClaims draws claims by name, and by template with every form of
// status: created, not needed, not yet created, named twice, and stray.
func (b *podBuilder) resourceClaims() {
	for chance(b.r, 25) {
		b.resourceClaim("claim-" + strconv.Itoa(len(b.pod.Spec.ResourceClaims)))
	}
	if chance(b.r, 8) {
		b.claimStatus("stray")
	}
	if chance(b.r, 12) {
		b.extendedClaim()
	}
	if chance(b.r, 6) {
		b.allocatableClaim()
	}
}

func (b *podBuilder) resourceClaim(name string) {
	claim := corev1.PodResourceClaim{Name: name}
	switch b.r.IntN(8) {
	case 0: // neither a name nor a template: refers to nothing
	case 1, 2, 3:
		target := b.reference("resourceclaims")
		claim.ResourceClaimName = &target
	default:
		template := b.name()
		claim.ResourceClaimTemplateName = &template
		for range b.r.IntN(3) {
			b.claimStatus(name)
		}
	}
	b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims, claim)
}

// claimStatus adds a status entry; without a name the claim was not needed.
func (b *podBuilder) claimStatus(name string) {
	status := corev1.PodResourceClaimStatus{Name: name}
	if chance(b.r, 80) {
		target := b.reference("resourceclaims")
		status.ResourceClaimName = &target
	}
	b.pod.Status.ResourceClaimStatuses = append(b.pod.Status.ResourceClaimStatuses, status)
}

// extendedClaim sets the claim made for the pod's extended resources.
func (b *podBuilder) extendedClaim() {
	b.pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: b.reference("resourceclaims"),
	}
}

// allocatableClaim adds a status of node-allocatable resources, which relates
// the claim to nothing.
func (b *podBuilder) allocatableClaim() {
	b.pod.Status.NodeAllocatableResourceClaimStatuses = append(b.pod.Status.NodeAllocatableResourceClaimStatuses,
		corev1.NodeAllocatableResourceClaimStatus{ResourceClaimName: b.reference("resourceclaims")})
}
