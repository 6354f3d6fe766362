package attackpaths

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// PolicyEvaluator evaluates admission policies. It need not be safe for concurrent use.
type PolicyEvaluator interface {
	// Review says what a ValidatingAdmissionPolicy with its binding decides about a request.
	Review(policy *inventory.Admission, request *Request) PolicyAnswer
}

// PolicyDecision is what a policy decides about a request.
type PolicyDecision uint8

// The zero PolicyDecision is Undecided.
const (
	Undecided PolicyDecision = iota
	Passed
	Refused
)

// String returns "Undecided", "Passed" or "Refused".
func (d PolicyDecision) String() string { return [...]string{"Undecided", "Passed", "Refused"}[d] }

// PolicyAnswer is a decision, and for Undecided why, after "which": "reads request.userInfo".
type PolicyAnswer struct {
	Decision PolicyDecision
	Why      string
}

// Request is a write as admission policies see it, after defaults and Kubernetes' own admission
// plugins. What the attacker, the state and Kubernetes do not fix is not known.
type Request struct {
	// Shape names the request among all that an evaluator gets. Requests of one shape differ
	// only in the namespace and in Detail.
	Shape string
	// Detail is a value in the fields DetailIn of the object: the name of an account, a secret
	// or a role.
	Detail   string
	DetailIn []Field

	Operation admissionv1.OperationType
	// Kind is the object's kind; empty if nothing is known of what is sent.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace is the object's; a namespace has its own name.
	Namespace string
	// NamespaceLabels are nil if the namespace is not known.
	NamespaceLabels map[string]string
	// Name is that in the request; AnyName is true if it is not known.
	Name    string
	AnyName bool

	// Objects returns the object and, for an update, the one that it replaces.
	Objects func() (object, old runtime.Object)
	// Known are the only fields of the object that are known; nil stands for all.
	// OldKnown are the same of the old object, if there is one.
	Known, OldKnown []Field
	// Unknown are fields of the object that may or may not be there, and Filled those that
	// are there with a value that is not known.
	Unknown, Filled []Field
}

// Field is a path of names in an object. The empty path is the object.
type Field []string

// Within reports whether a field is another one or a part of it.
func (f Field) Within(other Field) bool {
	return len(f) >= len(other) && slices.Equal(f[:len(other)], other)
}

// fields splits paths at their dots.
func fields(paths ...string) []Field {
	var all []Field
	for _, p := range paths {
		all = append(all, strings.Split(p, "."))
	}
	return all
}

// Updates reports whether there is an old object.
func (r *Request) Updates() bool { return r.Operation == admissionv1.Update }

// Knows reports whether the value of a field of the object is known.
func (r *Request) Knows(f Field) bool {
	hidden := func(u Field) bool { return f.Within(u) || u.Within(f) }
	return within(f, r.Known) && !slices.ContainsFunc(r.Unknown, hidden) && !slices.ContainsFunc(r.Filled, hidden)
}

// KnowsPresence reports whether it is known that a field of the object is there or is not.
func (r *Request) KnowsPresence(f Field) bool {
	hidden := func(u Field) bool { return f.Within(u) }
	below := func(u Field) bool { return f.Within(u) && len(f) > len(u) }
	return (within(f, r.Known) || around(f, r.Known)) &&
		!slices.ContainsFunc(r.Unknown, hidden) && !slices.ContainsFunc(r.Filled, below)
}

// KnowsOld and KnowsOldPresence are the same for the old object. That there is none is known.
func (r *Request) KnowsOld(f Field) bool {
	return !r.Updates() || r.OldKnown != nil && within(f, r.OldKnown)
}

// KnowsOldPresence is KnowsPresence for the old object.
func (r *Request) KnowsOldPresence(f Field) bool {
	return r.KnowsOld(f) || len(f) == 0 || around(f, r.OldKnown)
}

func within(f Field, known []Field) bool {
	return known == nil || slices.ContainsFunc(known, func(k Field) bool { return f.Within(k) })
}

// around reports whether a field contains a known one. Such fields are always there: they are
// metadata, spec and what has required fields.
func around(f Field, known []Field) bool {
	return slices.ContainsFunc(known, func(k Field) bool { return len(f) < len(k) && k.Within(f) })
}
