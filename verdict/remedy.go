package verdict

import "encoding/json"

// Remedy is what to change so that an answer becomes another one: a refusal an allow, or a step
// of an attack path impossible. Changes are made together. If no change exists, Changes is empty
// and None says why.
type Remedy struct {
	// Changes are made in this order.
	Changes []Change `json:"changes,omitempty"`
	// None says in one sentence why nothing can be changed; empty if there are Changes.
	None string `json:"none,omitempty"`
	// Warning says in one sentence what Changes give besides the wanted answer, or what has to be
	// considered before they are made; empty if there is nothing to say.
	Warning string `json:"warning,omitempty"`
	// Disrupts says what Changes delete, start again, or take from Kubernetes itself; empty if they do none of that.
	Disrupts string `json:"disrupts,omitempty"`
	// OtherRights is how many rights Changes take that do not give the step of an attack path: one for each verb,
	// resource and name of a rule, and each subject that has it. A group counts as two subjects at least.
	OtherRights int `json:"otherRights,omitempty"`
}

// Subject says what a [Change] is made to.
type Subject string

// The subjects of changes.
const (
	// OfObject changes an object of the cluster.
	OfObject Subject = "Object"
	// OfRequest changes the request: the object that is written, or an attribute of the request.
	OfRequest Subject = "Request"
	// OfFeatureGate changes a feature gate of kube-apiserver.
	OfFeatureGate Subject = "FeatureGate"
)

// Op is an operation of a JSON patch (RFC 6902, section 4).
type Op string

// The operations.
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
	// Test makes the changes after it fail if the value at Path is another one. It protects
	// entries of lists, which are named by their position.
	Test Op = "test"
)

// RequestPath is the beginning of the paths of a request's attributes.
const RequestPath = "/request"

// Change is one operation on one object.
type Change struct {
	// Of says what is changed, and Op how.
	Of Subject `json:"of"`
	Op Op      `json:"op"`
	// APIVersion and Object name the object; for a request, the object that is written. Object's
	// Name is the gate's for [OfFeatureGate].
	APIVersion string `json:"apiVersion,omitempty"`
	Object     Object `json:"object,omitzero"`
	// Path is a JSON pointer (RFC 6901) into the object, "/subjects/0". If it is empty, [Add]
	// creates the object, which Value has whole, and [Remove] deletes it. For an attribute of a
	// request it begins with [RequestPath], as in "/request/fieldSelector".
	Path string `json:"path,omitempty"`
	// Value is what is added, put in the place of the old value, or expected there.
	Value json.RawMessage `json:"value,omitempty"`
}
