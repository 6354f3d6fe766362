package conformance

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
)

// branch is one refusal in the in-tree plugin, identified by its text. If texts are the
// same, the resource distinguishes them.
type branch struct {
	name     string
	resource string
	text     string
	last     bool // the text is the end of the message
}

// branches are all refusals of the in-tree plugin. The first match counts.
var branches = []branch{
	{name: "node that cannot be named", text: "could not determine node from user"},

	{name: "pods: subresource", text: "unexpected pod subresource"},
	{name: "pods: operation", text: "can only create and delete mirror pods"},
	{name: "pods: no object of its type", resource: "pods", text: "unexpected type"},
	{name: "pods: no mirror pod", text: "can only create mirror pods"},
	{name: "pods: not for the node", text: "can only create pods with spec.nodeName set to itself"},
	{name: "pods: several owners", text: "with a single owner reference set to itself"},
	{name: "pods: owner is not the node", text: "with an owner reference set to itself"},
	{name: "pods: owner is no controller", text: "with a controller owner reference set to itself"},
	{name: "pods: owner blocks deletion", text: "must not set blockOwnerDeletion"},
	{name: "pods: uid of the owner", text: "UID mismatch"},
	{name: "pods: service account", text: "that reference serviceaccounts", last: true},
	{name: "pods: secret", text: "that reference secrets", last: true},
	{name: "pods: config map", text: "that reference configmaps", last: true},
	{name: "pods: resource claim", text: "that reference resourceclaims", last: true},
	{name: "pods: configMap volume", text: "configmaps (via configmap volumes)"},
	{name: "pods: secret volume", text: "secrets (via secret volumes)"},
	{name: "pods: csi volume", text: "csidrivers (via CSI volumes)"},
	{name: "pods: glusterfs volume", text: "endpoints (via glusterFS volumes)"},
	{name: "pods: persistentVolumeClaim volume", text: "that reference persistentvolumeclaims", last: true},
	{name: "pods: ephemeral volume", text: "persistentvolumeclaims (via ephemeral volumes)"},
	{name: "pods: azureFile volume", text: "secrets (via azureFile volumes)"},
	{name: "pods: projected config map", text: "configmaps (via projected volumes)"},
	{name: "pods: projected secret", text: "secrets (via projected volumes)"},
	{name: "pods: projected token", text: "serviceaccounts (via projected volumes)"},
	{name: "pods: projected trust bundle", text: "that reference clustertrustbundles"},
	{name: "pods: projected certificate", text: "that reference podcertificates"},
	{name: "pods: unknown projection", text: "unknown source for projected volume"},
	{name: "pods: unknown volume", text: "unknown volume type"},
	{name: "pods: delete elsewhere", text: "can only delete pods with spec.nodeName set to itself"},
	{name: "pods/status: elsewhere", text: "can only update pod status for pods"},
	{name: "pods/status: labels", text: "cannot update labels through pod status"},
	{name: "pods/status: claims", text: "cannot update resource claim statues"},
	{name: "pods/status: extended claim", text: "cannot update extended resource claim status"},
	{name: "pods/status: allocatable claims", text: "cannot update node allocatable resource claim statuses"},
	{name: "pods/status, pods/eviction: operation", resource: "pods", text: "unexpected operation"},
	{name: "pods/eviction: no name", text: "could not determine pod from request data"},
	{name: "pods/eviction: elsewhere", text: "can only evict pods with spec.nodeName set to itself"},

	{name: "nodes: another", text: "is not allowed to modify node \""},
	{name: "nodes: no object of its type", resource: "nodes", text: "unexpected type"},
	{name: "nodes create: config source", text: "with a non-nil configSource"},
	{name: "nodes create: labels", text: "is not allowed to set the following labels"},
	{name: "nodes update: config source", text: "update configSource to a new non-nil configSource"},
	{name: "nodes update: taints", text: "is not allowed to modify taints"},
	{name: "nodes update: owners", text: "is not allowed to modify ownerReferences"},
	{name: "nodes update: labels", text: "is not allowed to modify labels"},

	{name: "persistentvolumeclaims: not the status", text: "may only update PVC status"},
	{name: "persistentvolumeclaims/status: operation", resource: "persistentvolumeclaims", text: "unexpected operation"},
	{name: "persistentvolumeclaims/status: no object of its type", resource: "persistentvolumeclaims", text: "unexpected type"},
	{name: "persistentvolumeclaims/status: other fields", text: "update fields other than status.quantity and status.conditions"},

	{name: "serviceaccounts/token: no object of its type", resource: "serviceaccounts", text: "unexpected type"},
	{name: "serviceaccounts/token: not bound", text: "token not bound to a pod"},
	{name: "serviceaccounts/token: bound without uid", text: "pod binding without a uid"},
	{name: "serviceaccounts/token: another uid", text: "does not match the UID in record"},
	{name: "serviceaccounts/token: elsewhere", text: "bound to a pod scheduled on a different node"},
	{name: "serviceaccounts/token: several audiences", text: "may only request 0 or 1 audiences"},
	{name: "serviceaccounts/token: several look-ups fail", resource: "serviceaccounts", text: ": ["},
	{name: "serviceaccounts/token: no claim", text: "persistentvolumeclaim \""},
	{name: "serviceaccounts/token: no volume", text: "persistentvolume \""},
	{name: "serviceaccounts/token: no driver", text: "csidriver.storage.k8s.io \""},
	{name: "serviceaccounts/token: kind of azureDisk", text: "is not supported in csi migration"},
	{name: "serviceaccounts/token: namespace of azureFile", text: "could not find a secret namespace"},
	{name: "serviceaccounts/token: id of awsElasticBlockStore", text: "failed to translate Kubernetes ID"},
	{name: "serviceaccounts/token: region of gcePersistentDisk", text: "failed to get region from zones"},
	{name: "serviceaccounts/token: audience", text: "is not authorized to request tokens for audience"},
	{name: "serviceaccounts/token: authorizer fails", text: "to request tokens for audience"},

	{name: "podcertificaterequests: gate", text: "PodCertificateRequest feature gate is disabled"},
	{name: "podcertificaterequests: operation", resource: "podcertificaterequests", text: "unexpected operation"},
	{name: "podcertificaterequests: subresource", resource: "podcertificaterequests", text: "unexpected subresource"},
	{name: "podcertificaterequests: no object of its type", resource: "podcertificaterequests", text: "unexpected type"},
	{name: "podcertificaterequests: another node", text: "which is not the requesting node"},
	{name: "podcertificaterequests: no node", text: "while retrieving node"},
	{name: "podcertificaterequests: uid of the node", text: "inconsistent with the running node"},
	{name: "podcertificaterequests: no pod", text: "while retrieving pod"},
	{name: "podcertificaterequests: uid of the pod", text: "which differs from running pod"},
	{name: "podcertificaterequests: elsewhere", text: "is not running on node"},
	{name: "podcertificaterequests: mirror pod", text: "is a mirror pod"},
	{name: "podcertificaterequests: service account", text: "that differs from running pod"},
	{name: "podcertificaterequests: no service account", text: "while retrieving service account"},
	{name: "podcertificaterequests: uid of the service account", text: "which differs from the running service account"},
	{name: "podcertificaterequests: authorizer fails", text: "to request podcertificaterequests for signer"},
	{name: "podcertificaterequests: signer", text: "does not mount a podCertificate projected volume"},

	{name: "leases: namespace", text: "can only access leases in the"},
	{name: "leases: no object of its type", resource: "leases", text: "unexpected type"},
	{name: "leases: another", text: "can only access node lease with the same name"},

	{name: "csinodes: no object", text: "unable to access the object name"},
	{name: "csinodes: another", text: "can only access CSINode with the same name"},
	{name: "csinodes/status: gate", text: "CSIVolumeHealth feature gate is disabled"},
	{name: "csinodes/status: operation", resource: "csinodes", text: "unexpected operation"},
	{name: "csinodes/status: no object of its type", resource: "csinodes", text: "unexpected type"},
	{name: "csinodes/status: spec", text: "modify CSINode spec via status"},

	{name: "resourceslices: no object of its type", resource: "resourceslices", text: "unexpected type"},
	{name: "resourceslices create: another node's", text: "can only create ResourceSlice"},
	{name: "resourceslices delete: another node's", text: "can only delete ResourceSlice"},

	{name: "certificatesigningrequests: no object of its type", resource: "certificatesigningrequests", text: "unexpected type"},
	{name: "certificatesigningrequests: not readable", text: "unable to parse csr"},
	{name: "certificatesigningrequests: another name", text: "can only create a node CSR with CN="},

	{name: "node not found", text: "node \""},
	{name: "pod not found", text: "pod \""},
}

func branchOf(w *generate.Write, a intree.Admitted) (string, bool) {
	for _, b := range branches {
		fits := strings.Contains(a.Message, b.text) && (b.resource == "" || b.resource == w.Resource)
		if fits && (!b.last || strings.HasSuffix(a.Message, b.text)) {
			return b.name, true
		}
	}
	return "", false
}
