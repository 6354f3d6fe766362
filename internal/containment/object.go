package containment

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// object is what is kept of an object. It is immutable.
type object struct {
	metav1.TypeMeta
	// ObjectMeta has the name, UID, resource version, generation and creation time only.
	metav1.ObjectMeta
	// spec is the JSON of the spec, or of its extract if it is too large; nil if there is none, or if there
	// is no room for it.
	spec []byte
	// size is the size of the whole spec in bytes, and room that of what is to be kept, even if there is no
	// room for it.
	size, room int
	// left is how many subjects of a spec that is too large are not in its extract.
	left unread
	// status is the zero value if it is not one that a server writes.
	status status
}

// status is what servers have said about an object.
type status struct {
	observed  int64
	condition metav1.Condition
}

// DeepCopyObject implements runtime.Object. Objects are immutable.
func (o *object) DeepCopyObject() runtime.Object {
	if o == nil {
		return nil
	}
	same := *o
	return &same
}

// list is a list of objects.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*object
}

// DeepCopyObject implements runtime.Object.
func (l *list) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	same := *l
	return &same
}

// older orders objects by age, then by name.
func older(a, b *object) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
		strings.Compare(string(a.UID), string(b.UID)),
	)
}

// withoutSpec returns the object without its spec.
func (o *object) withoutSpec() *object {
	without := *o
	without.spec = nil
	return &without
}

// version identifies a generation of an object.
type version struct {
	uid        types.UID
	generation int64
}

func (o *object) version() version { return version{o.UID, o.Generation} }
