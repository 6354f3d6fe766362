package access

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Request is what authorizers decide about: whether a user may do something. A
// request is either for a resource, or for a non-resource path.
type Request struct {
	// User is the name of the user. Groups are all groups of the user, including
	// system:authenticated and the like: nothing adds them later. UID and Extra are
	// the other results of authentication.
	User   string
	UID    string
	Groups []string
	Extra  map[string][]string

	// Verb is a Kubernetes verb (get, list, create, …) or, in requests for a path,
	// the HTTP method in lower case.
	Verb string

	// ResourceRequest is true for requests for a resource, to which the fields from
	// Group to LabelSelector belong. It is false for requests for Path.
	ResourceRequest bool
	// Group is the API group, empty for the core group.
	Group string
	// Version is the API version; "*" stands for all, as in a review that names
	// none.
	Version string
	// Resource is the plural resource name.
	Resource    string
	Subresource string
	// Namespace is empty for cluster-scoped objects and for requests across all
	// namespaces.
	Namespace string
	// Name is empty for requests that name no object.
	Name string
	// FieldSelector and LabelSelector hold the requirements of the request's
	// selectors. All of them hold together.
	FieldSelector fields.Requirements
	LabelSelector labels.Requirements

	// Path is the path of a request that is not for a resource, such as /healthz.
	Path string
}
