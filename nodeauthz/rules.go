package nodeauthz

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// condition is what a rule requires of a request, apart from resource and verb.
type condition uint8

const (
	// granted: nothing more.
	granted condition = iota
	// related: the request names an object that the graph relates to the node.
	related
	// ownName: the request names the node itself.
	ownName
	// selected: a field selector requires spec.nodeName=<node>.
	selected
	// selectedOrRelated: selected, or else related.
	selectedOrRelated
	// leaseNamespace: the request is in kube-node-lease.
	leaseNamespace
	// ownLease: leaseNamespace and ownName.
	ownLease
)

// rule allows some verbs on a resource or a subresource of it.
type rule struct {
	subresource string // or anySubresource
	verbs       verbSet
	condition   condition
	when        *requirement // nil: always
}

const anySubresource = "*"

// requirement is what a rule requires of the cluster.
type requirement struct {
	holds func(kubeversion.Features) bool
	gates []kubeversion.Gate // each of which is sufficient
}

// resource is one resource with the rules for it. For a request, the rules with its
// subresource and verb apply in order.
type resource struct {
	group string
	name  string
	// kind is the kind of the vertices that the condition related looks up.
	kind graph.Kind
	// clusterScoped objects have no namespace.
	clusterScoped bool
	rules         []rule
}

const (
	authentication = authenticationv1.GroupName
	authorization  = authorizationv1.GroupName
	certificates   = certificatesv1.GroupName
	coordination   = coordinationv1.GroupName
	events         = "events.k8s.io"
	nodeGroup      = nodev1.GroupName
	resourceGroup  = resourcev1.GroupName
	storage        = storagev1.GroupName

	leasesNamespace = "kube-node-lease"
	nodeNameField   = "spec.nodeName"
)

const read = get | list | watch

var (
	withSelectors = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Enabled(kubeversion.AuthorizeNodeWithSelectors) },
		gates: []kubeversion.Gate{kubeversion.AuthorizeNodeWithSelectors},
	}
	withoutSelectors = &requirement{
		holds: func(f kubeversion.Features) bool { return !f.Enabled(kubeversion.AuthorizeNodeWithSelectors) },
	}
	withoutSelectorsSince31 = &requirement{
		holds: func(f kubeversion.Features) bool { return withoutSelectors.holds(f) && f.Minor() >= 31 },
	}
	serviceAccountReads = &requirement{
		holds: func(f kubeversion.Features) bool {
			return f.Enabled(kubeversion.KubeletServiceAccountTokenForCredentialProviders) || f.Enabled(kubeversion.PodCertificateRequest)
		},
		gates: []kubeversion.Gate{kubeversion.KubeletServiceAccountTokenForCredentialProviders, kubeversion.PodCertificateRequest},
	}
	podCertificates = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Enabled(kubeversion.PodCertificateRequest) },
		gates: []kubeversion.Gate{kubeversion.PodCertificateRequest},
	}
	trustBundles = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Enabled(kubeversion.ClusterTrustBundle) },
		gates: []kubeversion.Gate{kubeversion.ClusterTrustBundle},
	}
	// Without it API servers have no slices.
	resourceAllocation = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Enabled(kubeversion.DynamicResourceAllocation) },
		gates: []kubeversion.Gate{kubeversion.DynamicResourceAllocation},
	}
	// The gate is older, but nodes were given the right in 1.37.
	csiNodeStatus = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Enabled(kubeversion.CSIVolumeHealth) && f.Minor() >= 37 },
		gates: []kubeversion.Gate{kubeversion.CSIVolumeHealth},
	}
	since35 = &requirement{
		holds: func(f kubeversion.Features) bool { return f.Minor() >= 35 },
	}
)

// resources has every rule of the Node authorizer. Requests that it does not list are
// not allowed.
//
// A few resource names contain a slash. They match only access reviews with the
// subresource in the resource field. Kubernetes does not split these but looks them
// up in the rules of the system:node cluster role.
var resources = []resource{
	// Objects that pods need.
	{name: "secrets", kind: graph.Secret, rules: []rule{{verbs: read, condition: related}}},
	{name: "configmaps", kind: graph.ConfigMap, rules: []rule{{verbs: read, condition: related}}},
	{name: "persistentvolumeclaims", kind: graph.PersistentVolumeClaim, rules: []rule{
		{verbs: get, condition: related},
		{subresource: "status", verbs: update | patch, condition: related},
	}},
	{name: "persistentvolumes", kind: graph.PersistentVolume, clusterScoped: true, rules: []rule{{verbs: get, condition: related}}},
	{
		group: storage, name: "volumeattachments", kind: graph.VolumeAttachment, clusterScoped: true,
		rules: []rule{{verbs: get, condition: related}},
	},
	{group: resourceGroup, name: "resourceclaims", kind: graph.ResourceClaim, rules: []rule{{verbs: get, condition: related}}},
	{name: "serviceaccounts", kind: graph.ServiceAccount, rules: []rule{
		{verbs: get, condition: related, when: serviceAccountReads},
		{subresource: "token", verbs: create, condition: related},
	}},

	// Objects with the node's name.
	{name: "nodes", clusterScoped: true, rules: []rule{
		{verbs: create | update | patch, condition: granted},
		{verbs: read, condition: ownName, when: withSelectors},
		{verbs: read, condition: granted, when: withoutSelectors},
		{subresource: "status", verbs: update | patch, condition: granted},
	}},
	{group: coordination, name: "leases", rules: []rule{
		{subresource: anySubresource, verbs: create, condition: leaseNamespace},
		{subresource: anySubresource, verbs: get | update | patch | remove, condition: ownLease},
	}},
	{group: storage, name: "csinodes", clusterScoped: true, rules: []rule{
		{verbs: create, condition: granted},
		{verbs: get | update | patch | remove, condition: ownName},
		{subresource: "status", verbs: get | update | patch, condition: ownName, when: csiNodeStatus},
	}},

	// Objects on the node.
	{name: "pods", kind: graph.Pod, rules: []rule{
		{verbs: get, condition: related, when: withSelectors},
		{verbs: list | watch, condition: selectedOrRelated, when: withSelectors},
		{verbs: read, condition: granted, when: withoutSelectors},
		{verbs: create | remove, condition: granted},
		{subresource: "status", verbs: update | patch, condition: granted},
		{subresource: "eviction", verbs: create, condition: granted},
	}},
	{group: resourceGroup, name: "resourceslices", kind: graph.ResourceSlice, clusterScoped: true, rules: []rule{
		{verbs: create, condition: granted},
		{verbs: get | update | patch | remove, condition: related, when: resourceAllocation},
		{verbs: list | watch | removeCollection, condition: selected, when: withSelectors},
		{verbs: list | watch, condition: granted, when: withoutSelectors},
		{verbs: removeCollection, condition: granted, when: withoutSelectorsSince31},
	}},
	{group: certificates, name: "podcertificaterequests", kind: graph.PodCertificateRequest, rules: []rule{
		{verbs: create, condition: granted, when: podCertificates},
		{verbs: get, condition: related, when: podCertificates},
		{verbs: list | watch, condition: selected, when: podCertificates},
	}},

	// Rules for every node.
	{group: authentication, name: "tokenreviews", clusterScoped: true, rules: []rule{{verbs: create}}},
	{group: authorization, name: "subjectaccessreviews", clusterScoped: true, rules: []rule{{verbs: create}}},
	{group: authorization, name: "localsubjectaccessreviews", rules: []rule{{verbs: create}}},
	{name: "services", rules: []rule{{verbs: read}}},
	{name: "endpoints", rules: []rule{{verbs: get}}},
	{name: "events", rules: []rule{{verbs: create | update | patch}}},
	{group: events, name: "events", rules: []rule{{verbs: create | update | patch, when: since35}}},
	{group: certificates, name: "certificatesigningrequests", clusterScoped: true, rules: []rule{{verbs: read | create}}},
	{group: certificates, name: "clustertrustbundles", clusterScoped: true, rules: []rule{{verbs: read, when: trustBundles}}},
	{group: storage, name: "csidrivers", clusterScoped: true, rules: []rule{{verbs: read}}},
	{group: nodeGroup, name: "runtimeclasses", clusterScoped: true, rules: []rule{{verbs: read}}},

	{name: "nodes/status", rules: []rule{{verbs: update | patch}}},
	{name: "pods/status", rules: []rule{{verbs: update | patch}}},
	{name: "pods/eviction", rules: []rule{{verbs: create}}},
	{name: "persistentvolumeclaims/status", rules: []rule{{verbs: get | update | patch}}},
	{name: "serviceaccounts/token", rules: []rule{{verbs: create}}},
	{group: storage, name: "csinodes/status", rules: []rule{{verbs: get | update | patch, when: csiNodeStatus}}},
}
