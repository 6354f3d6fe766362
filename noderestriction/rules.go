package noderestriction

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const (
	certificates  = certificatesv1.GroupName
	coordination  = coordinationv1.GroupName
	resourceGroup = resourcev1.GroupName
	storage       = storagev1.GroupName

	leasesNamespace = "kube-node-lease"
)

func since(m kubeversion.Minor) requirement {
	return func(f kubeversion.Features) bool { return f.Minor() >= m }
}

func before(m kubeversion.Minor) requirement {
	return func(f kubeversion.Features) bool { return f.Minor() < m }
}

func gateOn(g kubeversion.Gate) requirement {
	return func(f kubeversion.Features) bool { return f.Enabled(g) }
}

func gateOff(g kubeversion.Gate) requirement {
	return func(f kubeversion.Features) bool { return !f.Enabled(g) }
}

func both(a, b requirement) requirement {
	return func(f kubeversion.Features) bool { return a.holds(f) && b.holds(f) }
}

// resources has every rule of NodeRestriction. Requests that it does not list are not
// restricted. A behaviour that came with a patch release counts for the whole minor.
var resources = []resource{
	{name: "pods", rules: []rule{
		{operations: onCreate, checks: []check{
			{
				says: "the pod is a mirror pod: it has the annotation kubernetes.io/config.mirror", reads: theObject,
				holds: object(isMirrorPod),
			},
			{says: "spec.nodeName is the node", reads: theObject, holds: object(namesNode)},
			{
				says: "the pod's one owner is the node, as its controller and without blockOwnerDeletion", reads: theObject,
				holds: object(ownedByNode),
			},
			{says: "the owner's uid is the uid of the Node object", reads: theObject, holds: object(ownerUID)},
			{says: "the pod refers to no object of the API", reads: theObject, holds: object(refersToNothing), when: since(34)},
			{
				says: "the pod refers to no service account, secret, config map, trust bundle or claim", reads: theObject,
				holds: object(refersToNothingKnown), when: before(34),
			},
			{
				says: "the pod has no resource claims", reads: theObject, holds: object(hasNoResourceClaims),
				when: both(since(32), before(34)),
			},
		}},
		{operations: onDelete, checks: []check{
			{says: "the pod exists", reads: theName | theNamespace, holds: podExists},
			{says: "the pod is on the node", reads: thePod, holds: podOnNode},
		}},
		{operations: onUpdate, checks: []check{
			{says: "never: nodes create and delete pods and update their status only", holds: operationRefused},
		}},
		{subresource: "status", operations: onUpdate, checks: []check{
			{
				says: "the pod was on the node before the update", reads: theOldObject, holds: oldObject(wasOnNode),
				instead: byRequest(theName|theNamespace, storedOnNode),
			},
			{says: "labels do not change", reads: theObject | theOldObject, holds: update(podLabelsStay)},
			{says: "status.resourceClaimStatuses does not change", reads: theObject | theOldObject, holds: update(claimStatusesStay)},
			{
				says: "status.extendedResourceClaimStatus does not change", reads: theObject | theOldObject,
				holds: update(extendedClaimStatusStays), when: since(34),
			},
			{
				says: "status.nodeAllocatableResourceClaimStatuses does not change", reads: theObject | theOldObject,
				holds: update(allocatableClaimStatusesStay), when: since(37),
			},
		}},
		{subresource: "eviction", operations: onCreate, checks: []check{
			{
				says: "the request or the eviction names a pod that exists", reads: theObject | theName | theNamespace,
				holds:   evictedPodExists,
				instead: byRequest(theName|theNamespace, podExists),
			},
			{says: "the pod is on the node", reads: thePod, holds: podOnNode},
		}},
		{subresource: "status", operations: onAny, checks: []check{
			{says: "never: nodes only update the status", holds: operationRefused},
		}},
		{subresource: "eviction", operations: onAny, checks: []check{
			{says: "never: nodes only create evictions", holds: operationRefused},
		}},
		{subresource: anySubresource, operations: onAny, checks: []check{
			{says: "never: of pods, nodes write status and eviction only", holds: subresourceRefused},
		}},
	}},

	{name: "nodes", rules: []rule{
		{subresource: anySubresource, operations: onCreate, checks: []check{
			{says: "the name is the node's own", reads: theName, holds: ownNode, ownName: true},
			{says: "spec.configSource is not set", reads: theObject, holds: object(noConfigSource)},
			{says: "there are no labels that nodes may not write", reads: theObject, holds: object(labelsAllowed)},
		}},
		{subresource: anySubresource, operations: onUpdate, checks: []check{
			{says: "the name is the node's own", reads: theName, holds: ownNode, ownName: true},
			{says: "spec.configSource is not newly set", reads: theObject | theOldObject, holds: update(configSourceStays)},
			{says: "taints do not change", reads: theObject | theOldObject, holds: update(taintsStay)},
			{says: "owner references do not change", reads: theObject | theOldObject, holds: update(ownersStay), when: since(31)},
			{says: "no label changes that nodes may not write", reads: theObject | theOldObject, holds: update(labelChangesAllowed)},
		}},
		{subresource: anySubresource, operations: onDelete, checks: []check{
			{says: "the name is the node's own", reads: theName, holds: ownNode, ownName: true},
		}},
	}},

	{name: "persistentvolumeclaims", rules: []rule{
		{subresource: "status", operations: onUpdate, checks: []check{
			{
				says: "nothing changes but status.capacity and status.conditions", reads: theObject | theOldObject,
				holds: update(onlySizeChanges), when: gateOff(kubeversion.RecoverVolumeExpansionFailure),
			},
			{
				says:  "nothing changes but status.capacity, conditions, allocatedResources and allocatedResourceStatuses",
				reads: theObject | theOldObject,
				holds: update(onlySizeAndAllocationChange), when: gateOn(kubeversion.RecoverVolumeExpansionFailure),
			},
		}},
		{subresource: "status", operations: onAny, checks: []check{
			{says: "never: nodes only update the status", holds: operationRefused},
		}},
		{subresource: anySubresource, operations: onAny, checks: []check{
			{says: "never: of claims, nodes write the status only", holds: subresourceRefused},
		}},
	}},

	{name: "serviceaccounts", rules: []rule{
		{subresource: "token", operations: onCreate, checks: []check{
			{says: "the token is bound to a pod by its name and uid", reads: theObject, holds: object(boundToPod)},
			{says: "the pod exists", reads: theObject | theNamespace, holds: object(boundPodExists)},
			{says: "the pod has that uid", reads: theObject | thePod, holds: object(boundPodUID)},
			{says: "the pod is on the node", reads: thePod, holds: boundPodOnNode},
			{
				says:  "there is at most one audience, which a projected token or a CSI driver of the pod has",
				reads: theObject | thePod, holds: object(audienceOfPodOrDriver),
				when: both(gateOn(kubeversion.ServiceAccountNodeAudienceRestriction), before(migrationSince)),
			},
			{
				says: "there is at most one audience, which a projected token or a CSI driver of the pod has, or which an " +
					"authorizer lets the node request",
				reads: theObject | theName | thePod, holds: object(audienceAllowed),
				when: both(gateOn(kubeversion.ServiceAccountNodeAudienceRestriction), since(migrationSince)),
			},
		}},
	}},

	{group: certificates, name: "podcertificaterequests", rules: []rule{
		{subresource: anySubresource, operations: onAny, when: both(since(34), gateOff(kubeversion.PodCertificateRequest)), checks: []check{
			{says: "never: feature gate PodCertificateRequest is off", holds: gateRefused(kubeversion.PodCertificateRequest)},
		}},
		{operations: onCreate, when: since(34), checks: []check{
			{says: "spec.nodeName is the node", reads: theObject, holds: certificateForNode},
			{says: "the node exists and has spec.nodeUID", reads: theCertificate, holds: certificateNodeUID},
			{says: "the pod exists and has spec.podUID", reads: theCertificate | theNamespace, holds: certificatePodUID},
			{says: "the pod is on the node", reads: thePod, holds: boundPodOnNode},
			{says: "the pod is not a mirror pod", reads: thePod, holds: certificateNotForMirrorPod},
			{says: "spec.serviceAccountName is the pod's", reads: theCertificate | thePod, holds: certificateServiceAccount},
			{
				says: "the service account exists and has spec.serviceAccountUID", reads: theCertificate | theNamespace,
				holds: certificateServiceAccountUID,
			},
			{
				says:  "a projected volume of the pod has a certificate of the signer, or an authorizer lets the node request it",
				reads: theCertificate | thePod | theNamespace, holds: signerAllowed, when: since(37),
			},
		}},
		{operations: onAny, when: since(34), checks: []check{
			{says: "never: nodes only create pod certificate requests", holds: operationRefused},
		}},
		{subresource: anySubresource, operations: onCreate, when: since(34), checks: []check{
			{says: "never: nodes write no subresource of pod certificate requests", holds: subresourceRefused},
		}},
		{subresource: anySubresource, operations: onAny, when: since(34), checks: []check{
			{says: "never: nodes only create pod certificate requests", holds: operationRefused},
		}},
	}},

	{group: coordination, name: "leases", rules: []rule{
		{subresource: anySubresource, operations: onCreate, checks: []check{
			{says: "the namespace is kube-node-lease", reads: theNamespace, holds: inLeaseNamespace},
			{
				says: "the lease has the node's name", reads: theObject, holds: object(newLeaseOfNode),
				instead: byRequest(theName, leaseOfNode), ownName: true,
			},
		}},
		{subresource: anySubresource, operations: onUpdate | onDelete, checks: []check{
			{says: "the namespace is kube-node-lease", reads: theNamespace, holds: inLeaseNamespace},
			{says: "the lease has the node's name", reads: theName, holds: leaseOfNode, ownName: true},
		}},
	}},

	{group: storage, name: "csinodes", rules: []rule{
		{subresource: "status", operations: onUpdate, when: since(37), checks: []check{
			{says: "the CSINode has the node's name", reads: theName, holds: csiNodeOfNode, ownName: true},
			csiVolumeHealthIsOn(),
			{
				says: "spec does not change", reads: theObject | theOldObject, holds: update(csiNodeSpecStays),
				when: gateOn(kubeversion.CSIVolumeHealth),
			},
		}},
		{subresource: "status", operations: onCreate, when: since(37), checks: []check{
			newCSINodeHasNodeName(),
			csiVolumeHealthIsOn(),
			{says: "never: nodes only update the status", holds: operationRefused},
		}},
		{subresource: "status", operations: onDelete, when: since(37), checks: []check{
			{says: "the CSINode has the node's name", reads: theName, holds: csiNodeOfNode, ownName: true},
			csiVolumeHealthIsOn(),
			{says: "never: nodes only update the status", holds: operationRefused},
		}},
		{subresource: anySubresource, operations: onCreate, checks: []check{
			newCSINodeHasNodeName(),
		}},
		{subresource: anySubresource, operations: onUpdate | onDelete, checks: []check{
			{says: "the CSINode has the node's name", reads: theName, holds: csiNodeOfNode, ownName: true},
		}},
	}},

	{group: resourceGroup, name: "resourceslices", rules: []rule{
		{subresource: anySubresource, operations: onCreate, checks: []check{
			{says: "spec.nodeName is the node", reads: theObject, holds: newSliceOfNode},
		}},
		{subresource: anySubresource, operations: onDelete, when: since(31), checks: []check{
			{says: "spec.nodeName is the node", reads: theOldObject, holds: sliceOfNode, instead: &alternative{theName, storedSliceOfNode}},
		}},
	}},

	{group: certificates, name: "certificatesigningrequests", rules: []rule{
		{
			subresource: anySubresource, operations: onCreate,
			when: gateOff(kubeversion.AllowInsecureKubeletCertificateSigningRequests),
			checks: []check{{
				says: "a request to a kubelet signer is for the common name system:node:<node>", reads: theObject,
				holds: object(signingRequestForNode),
			}},
		},
	}},
}

func csiVolumeHealthIsOn() check {
	return check{
		says: "feature gate CSIVolumeHealth is on", holds: gateRefused(kubeversion.CSIVolumeHealth),
		when: gateOff(kubeversion.CSIVolumeHealth),
	}
}

func newCSINodeHasNodeName() check {
	return check{
		says: "the CSINode has the node's name", reads: theObject, holds: newCSINodeOfNode,
		instead: byRequest(theName, csiNodeOfNode), ownName: true,
	}
}
