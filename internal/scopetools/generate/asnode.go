package generate

import "fmt"

// The fields of the objects that rules compare.
const (
	oldNode = "(oldObject == null ? '' : oldObject.?spec.?nodeName.orValue(''))"
	newNode = "(object == null ? '' : object.?spec.?nodeName.orValue(''))"
)

// unchanged is true if an update does not change a field.
func unchanged(path string) string { return fmt.Sprintf("object.%s == oldObject.%s", path, path) }

// asNodeRule says which writes of one resource a node may make.
type asNodeRule struct {
	group, resource string
	// subresources: "" is the resource itself, "*" everything.
	subresource string
	operations  []string
	// requires has the further conditions, in CEL.
	requires []string
	// open is a condition that cannot be expressed in CEL.
	open string
}

const ownName = "variables.name == variables.node"

var (
	creates  = []string{"CREATE"}
	updates  = []string{"UPDATE"}
	deletes  = []string{"DELETE"}
	writes   = []string{"CREATE", "UPDATE", "DELETE"}
	nodeOnly = []string{ownName}
)

// asNodeRules are the writes for which the Node authorizer has rules, with what NodeRestriction requires.
// Where that is long, the rule is stricter.
var asNodeRules = []asNodeRule{
	{resource: "nodes", operations: creates, requires: []string{
		ownName, "!object.?spec.?configSource.hasValue()",
		"object.?metadata.?labels.orValue({}).all(k, !k.contains('kubernetes.io') && !k.contains('k8s.io'))",
	}},
	{resource: "nodes", operations: updates, requires: nodeStays},
	{resource: "nodes", subresource: "status", operations: updates, requires: nodeStays},
	{group: "coordination.k8s.io", resource: "leases", subresource: "*", operations: writes, requires: []string{
		"variables.objectNamespace == 'kube-node-lease'", ownName,
	}},
	{group: "storage.k8s.io", resource: "csinodes", operations: writes, requires: nodeOnly},
	// Nodes may write it only with the feature gate CSIVolumeHealth, which admission does not know.
	{group: "storage.k8s.io", resource: "csinodes", subresource: "status", operations: updates, requires: []string{never}},
	{resource: "pods", operations: creates, requires: mirrorPod},
	{resource: "pods", operations: deletes, requires: []string{"variables.name != ''", oldNode + " == variables.node"}},
	{resource: "pods", subresource: "status", operations: updates, requires: []string{
		oldNode + " == variables.node", unchanged("?metadata.?labels"), unchanged("?status.?resourceClaimStatuses"),
		unchanged("?status.?extendedResourceClaimStatus"), unchanged("?status.?nodeAllocatableResourceClaimStatuses"),
	}},
	{resource: "pods", subresource: "eviction", operations: creates, open: "an eviction does not show the pod's node"},
	{resource: "persistentvolumeclaims", subresource: "status", operations: updates, open: "whether a pod on the node uses the claim"},
	{
		resource: "serviceaccounts", subresource: "token", operations: creates,
		requires: []string{
			"object.?spec.?boundObjectRef.?kind.orValue('') == 'Pod'", "object.?spec.?boundObjectRef.?name.orValue('') != ''",
			"object.?spec.?boundObjectRef.?uid.orValue('') != ''",
		},
		open: "whether the pod to which a token is bound is on the node, and may have the audience; a token without a pod is refused",
	},
	{group: "resource.k8s.io", resource: "resourceslices", operations: creates, requires: []string{newNode + " == variables.node"}},
	{group: "resource.k8s.io", resource: "resourceslices", operations: updates, requires: []string{
		oldNode + " == variables.node", newNode + " == variables.node",
	}},
	{group: "resource.k8s.io", resource: "resourceslices", operations: deletes, requires: []string{oldNode + " == variables.node"}},
	{
		group: "certificates.k8s.io", resource: "podcertificaterequests", operations: creates,
		requires: []string{newNode + " == variables.node"}, open: "whether the pod of a certificate request is on the node",
	},
	{group: "certificates.k8s.io", resource: "certificatesigningrequests", operations: creates, requires: []string{
		"!(object.?spec.?signerName.orValue('') in " +
			"['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving'])",
	}},
	{group: "authentication.k8s.io", resource: "tokenreviews", operations: creates},
	{group: "authorization.k8s.io", resource: "subjectaccessreviews", operations: creates},
	{group: "authorization.k8s.io", resource: "localsubjectaccessreviews", operations: creates},
	{resource: "events", operations: []string{"CREATE", "UPDATE"}},
}

// nodeStays: a node does not change its labels, taints and owners. NodeRestriction lets it change some
// labels.
var nodeStays = []string{
	ownName, unchanged("?metadata.?labels"), unchanged("?metadata.?ownerReferences"), unchanged("?spec.?taints"),
	unchanged("?spec.?configSource"),
}

// mirrorPod: a pod that stands for a static pod of the node, and refers to no object.
var mirrorPod = []string{
	"'kubernetes.io/config.mirror' in object.?metadata.?annotations.orValue({})",
	newNode + " == variables.node",
	"size(object.?metadata.?ownerReferences.orValue([])) == 1",
	"object.metadata.ownerReferences.all(o, o.apiVersion == 'v1' && o.kind == 'Node' && o.name == variables.node && " +
		"o.uid == variables.nodeUID && o.?controller.orValue(false) && !o.?blockOwnerDeletion.orValue(false))",
	"object.?spec.orValue({}).all(k, k in ['nodeName', 'containers', 'initContainers', 'volumes', 'hostNetwork', 'hostPID', 'hostIPC', " +
		"'dnsPolicy', 'restartPolicy', 'schedulerName', 'securityContext', 'terminationGracePeriodSeconds', 'tolerations', 'priority', " +
		"'priorityClassName', 'enableServiceLinks', 'preemptionPolicy'])",
	"object.?spec.?volumes.orValue([]).all(v, v.all(k, k in ['name', 'hostPath', 'emptyDir']))",
	"(object.?spec.?containers.orValue([]) + object.?spec.?initContainers.orValue([])).all(c, !has(c.envFrom) && " +
		"c.?env.orValue([]).all(e, !has(e.valueFrom)) && !c.?resources.?claims.hasValue())",
}
