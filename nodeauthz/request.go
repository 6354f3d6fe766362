package nodeauthz

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Request is a question put to an authorizer, with the attributes of a
// SubjectAccessReview. The Node authorizer does not look at what stands after
// Path.
type Request struct {
	// User and Groups identify who asks.
	User   string
	Groups []string
	// Verb is a lower-case Kubernetes verb, or an HTTP method in lower case for
	// non-resource requests.
	Verb string
	// Group is the API group, empty for the core group.
	Group string
	// Resource is the plural resource name.
	Resource    string
	Subresource string
	// Namespace is empty for cluster-scoped objects and requests across all
	// namespaces.
	Namespace string
	// Name is empty for requests that name no object.
	Name string
	// FieldSelector holds the requirements of the request's field selector. One
	// requirement spec.nodeName=<node> among them is enough for rules that ask
	// for it.
	FieldSelector fields.Requirements
	// ResourceRequest is false for requests to Path, such as /healthz, which
	// have no resource.
	ResourceRequest bool
	Path            string

	// UID and Extra say more about who asks, as authentication found it.
	UID   string
	Extra map[string][]string
	// Version is the API version; "*" stands for all, as in a review that
	// names none.
	Version string
	// LabelSelector holds the requirements of the request's label selector.
	LabelSelector labels.Requirements
}
