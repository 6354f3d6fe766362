package noderestriction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/access"
)

// Operation is the operation of a request, in the notation of admission.k8s.io.
type Operation string

// The operations of admission. Reads are not admitted.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// OperationOf returns the operation of admission that a verb leads to; empty for reads, and for verbs
// that are not about the stored object, such as bind.
func OperationOf(verb string) Operation {
	switch verb {
	case "create":
		return Create
	case "update", "patch":
		return Update
	case "delete", "deletecollection":
		return Delete
	}
	return ""
}

// Verbs returns the verbs with which requests of the operation are authorized. An API server uses
// the HTTP method's for a connection to a subresource.
func (o Operation) Verbs() []string {
	switch o {
	case Create:
		return []string{"create"}
	case Update:
		return []string{"update", "patch"}
	case Delete:
		return []string{"delete", "deletecollection"}
	case Connect:
		return []string{"create", "get", "update", "patch", "delete"}
	}
	return nil
}

// Request is one write, with the attributes of an AdmissionReview.
type Request struct {
	// User, UID, Groups and Extra identify the user.
	User   string
	UID    string
	Groups []string
	Extra  map[string][]string

	Operation Operation
	// Group is the API group, empty for the core group.
	Group string
	// Version of the API group.
	Version string
	// Resource is the plural resource name.
	Resource    string
	Subresource string
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	// Name is empty if the server generates it or the object has it.
	Name string

	// Object is the object to write, and OldObject the existing one: typed objects of
	// k8s.io/api in any version that has been served since 1.30. Versions without a
	// Go type: resource slices v1alpha2 and v1alpha3 are unstructured, and pod
	// certificate requests v1alpha1 have the type of v1beta1. Each is nil when
	// absent, or when [Restriction.Reads] reports that no rule reads it.
	Object    runtime.Object
	OldObject runtime.Object
}

// State is the known state of the cluster. Returned objects must not be changed.
type State interface {
	Pods
	Nodes
	ServiceAccounts
	Volumes
}

// Pods finds pods: names, UID and annotations, spec.nodeName,
// spec.serviceAccountName and spec.volumes.
type Pods interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
}

// Nodes finds nodes: names and UID.
type Nodes interface {
	Node(name string) (*corev1.Node, bool)
}

// ServiceAccounts finds service accounts: names and UID.
type ServiceAccounts interface {
	ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool)
}

// Volumes finds the objects that map a pod's volume to its CSI driver: a claim's
// spec.volumeName, a volume's source, a driver's spec.tokenRequests.
type Volumes interface {
	PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool)
	PersistentVolume(name string) (*corev1.PersistentVolume, bool)
	CSIDriver(name string) (*storagev1.CSIDriver, bool)
}

// ResourceSlices finds the node of a resource slice, empty for a slice without one. A
// [State] may implement it too: then [Restriction.Consider] can decide about the
// deletion of a slice without the slice.
type ResourceSlices interface {
	ResourceSliceNode(name string) (node string, ok bool)
}

// Syncing reports whether all objects of the cluster have been read. A [State] may implement it too: until
// HasSynced returns true, a refusal that a missing object could cause is an error, with status 500 and
// [ErrNotSynced].
type Syncing interface {
	HasSynced() bool
}

// Authorizer asks the cluster's authorizers whether a node may have a token or a
// certificate that its pod does not request: the request's Resource is the audience,
// or the signer's name with colons for slashes, and its Name the name of the
// service account. An error is ignored if allowed is true; otherwise it means that the
// question could not be decided.
type Authorizer interface {
	Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error)
}
