package noderestriction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/access"
)

// Operation is what a request does to an object, as admission.k8s.io spells it.
type Operation string

// The operations of admission. Reads are not admitted.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is one write, with the attributes of an AdmissionReview.
type Request struct {
	// User, UID, Groups and Extra identify who writes.
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
	// Name is empty for requests that leave it to the server or to the object.
	Name string

	// Object is the object to write, and OldObject the one that is there: typed
	// objects of k8s.io/api in any version that has been served since 1.30. Of
	// versions that have no Go type any more, resource slices v1alpha2 and
	// v1alpha3 are unstructured, and pod certificate requests v1alpha1 are of the
	// type of v1beta1. Each is nil when absent, or when [Restriction.Reads] says
	// that no rule looks at it.
	Object    runtime.Object
	OldObject runtime.Object
}

// State is what is known of the cluster. Objects must not be changed after they
// were returned.
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

// Volumes finds what leads from a pod's volume to its CSI driver: a claim's
// spec.volumeName, a volume's source, a driver's spec.tokenRequests.
type Volumes interface {
	PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool)
	PersistentVolume(name string) (*corev1.PersistentVolume, bool)
	CSIDriver(name string) (*storagev1.CSIDriver, bool)
}

// ResourceSlices finds the node that a resource slice names, empty for a slice
// that names none. A [State] may have it as well: [Restriction.Consider] can then
// decide about a slice that is deleted without being given the slice.
type ResourceSlices interface {
	ResourceSliceNode(name string) (node string, ok bool)
}

// Authorizer answers for the cluster's authorizers whether a node may have a token or a
// certificate that its pod does not ask for: the request's Resource is the audience, or
// the signer's name with colons for slashes, and its Name that of the service account. An error beside true does
// not matter; an error beside false says that the question could not be decided.
type Authorizer interface {
	Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error)
}
