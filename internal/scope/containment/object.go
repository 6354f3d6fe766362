package containment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// object has the kept fields of a NodeScope or a Quarantine. It is immutable.
type object struct {
	metav1.TypeMeta
	// ObjectMeta has the name, UID, resource version, generation and creation time only.
	metav1.ObjectMeta
	// spec is the JSON of the spec, or of its mode and subjects if it is too large; nil if there is no room for it.
	spec []byte
	// size is the size of the whole spec in bytes, and room the size of the part to keep, even if there is no
	// room for it.
	size, room int
	// status is the zero value if it is not one that a server writes.
	status status
}

// status has the status that servers have written for an object.
type status struct {
	observed  int64
	condition metav1.Condition
}

// asKubernetes decodes as API servers do: field names are case-sensitive, unknown fields are
// ignored, and the last of repeated names is used.
func asKubernetes() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// maxStatus is the maximum size of a status in bytes. A server writes less.
const maxStatus = 16 << 10

// UnmarshalJSON implements json.Unmarshaler. The spec and the status may have any type and size: one object that
// does not fit its schema must not hide the others.
func (o *object) UnmarshalJSON(text []byte) error {
	var in struct {
		metav1.TypeMeta
		Metadata struct {
			Name              string      `json:"name"`
			UID               types.UID   `json:"uid"`
			ResourceVersion   string      `json:"resourceVersion"`
			Generation        int64       `json:"generation"`
			CreationTimestamp metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Spec   jsontext.Value `json:"spec"`
		Status jsontext.Value `json:"status"`
	}
	if err := json.Unmarshal(text, &in, asKubernetes()); err != nil {
		return strictjson.Explain(err)
	}
	*o = object{TypeMeta: in.TypeMeta, size: len(in.Spec), ObjectMeta: metav1.ObjectMeta{
		Name: in.Metadata.Name, UID: in.Metadata.UID, ResourceVersion: in.Metadata.ResourceVersion,
		Generation: in.Metadata.Generation, CreationTimestamp: in.Metadata.CreationTimestamp,
	}}
	if o.spec = append([]byte{}, in.Spec...); o.tooLarge() { // not nil, even if there is no spec
		o.spec = modeAndSubjects(in.Spec)
	}
	o.room = len(o.spec)
	if len(in.Status) <= maxStatus {
		o.status = decodeStatus(in.Status)
	}
	return nil
}

// tooLarge reports whether the spec is larger than is ever kept.
func (o *object) tooLarge() bool { return o.size > maxSpec }

// modeAndSubjects returns the part of a NodeScope's spec that is kept although the spec is too large, so that its
// accounts are refused. The custom resource bounds it.
func modeAndSubjects(spec []byte) []byte {
	var part struct {
		Mode     jsontext.Value `json:"mode,omitzero"`
		Subjects jsontext.Value `json:"subjects,omitzero"`
	}
	_ = json.Unmarshal(spec, &part, asKubernetes())
	kept, err := json.Marshal(part, asKubernetes())
	if err != nil || len(kept) > maxSpec {
		return []byte{}
	}
	return kept
}

// decodeStatus returns the zero value for a status that cannot be decoded.
func decodeStatus(text []byte) status {
	var in v1alpha1.NodeScopeStatus // a Quarantine has the same status
	if len(text) == 0 || json.Unmarshal(text, &in, asKubernetes()) != nil {
		return status{}
	}
	for _, c := range in.Conditions {
		if c.Type == v1alpha1.ConditionAccepted {
			return status{in.ObservedGeneration, c}
		}
	}
	return status{}
}

// DeepCopyObject implements runtime.Object. Objects are immutable.
func (o *object) DeepCopyObject() runtime.Object {
	same := *o
	return &same
}

// list is a list of objects.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []*object `json:"items"`
}

// DeepCopyObject implements runtime.Object. Objects are immutable.
func (l *list) DeepCopyObject() runtime.Object {
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

// errTooLarge says that a spec is larger than servers read.
func errTooLarge(o *object) error {
	return fmt.Errorf("the spec has %d bytes as JSON, and at most %d are read", o.size, maxSpec)
}

// The bounds of each resource.
const (
	// maxObjects is the maximum number of objects in use.
	maxObjects = 10_000
	// maxSpec is the maximum size of a spec in bytes, as JSON.
	maxSpec = 64 << 10
	// maxSpecs is the maximum size of all specs in use.
	maxSpecs = 8 << 20
)

// ranked is an object with its place within the bounds.
type ranked struct {
	*object
	// exceeds is set if older objects use up the bounds.
	exceeds bool
}

// dropped reports whether a spec should be kept, in part or as a whole, and is not. The next list has it again.
func (o *object) dropped() bool { return o.spec == nil && o.room > 0 }

// rank returns the objects by age. The oldest are within the bounds, up to the first that does not
// fit. An object that is too large by itself takes up the room of what is kept of it. The result depends only on the
// objects, so that all servers agree. A further object never brings another one into the bounds.
func rank(objects []*object) []ranked {
	slices.SortFunc(objects, older)
	all := make([]ranked, len(objects))
	room, full := maxSpecs, false
	for i, o := range objects {
		full = full || i >= maxObjects || o.room > room
		if all[i] = (ranked{o, full}); !full {
			room -= o.room
		}
	}
	return all
}

// bounded returns the objects by age, without the specs of objects out of bounds.
func bounded(objects []*object) []*object {
	for i, r := range rank(objects) {
		if r.exceeds {
			objects[i] = r.withoutSpec()
		}
	}
	return objects
}
