package containment

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// maxSubject is the maximum size of a subject that is read of a spec that is too large, in bytes. A valid
// one is smaller.
const maxSubject = 1 << 10

// unread is how many subjects of a spec were not read.
type unread int

// allUnread means that the subjects cannot be read.
const allUnread unread = -1

// extract returns the part of a NodeScope's spec that is kept although the spec is too large: the mode and
// the subjects of one that says Enforce, so that its accounts are refused. It is nil if there is no such part.
// The size is at most [nodescope.MaxListed] times maxSubject.
func extract(spec []byte) (kept []byte, left unread) {
	var e struct {
		Mode     v1alpha1.Mode    `json:"mode"`
		Subjects []jsontext.Value `json:"subjects"`
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(spec), asKubernetes()) // which does not copy the spec
	if token, err := d.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return nil, 0
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, 0
		}
		switch name.String() {
		case "mode":
			var mode jsontext.Value
			mode, err = d.ReadValue()
			e.Mode = ""
			if string(mode) == `"`+string(v1alpha1.Enforce)+`"` {
				e.Mode = v1alpha1.Enforce
			}
		case "subjects":
			e.Subjects, left, err = readSubjects(d)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return nil, 0
		}
	}
	if e.Mode != v1alpha1.Enforce {
		return nil, 0
	}
	if len(e.Subjects) == 0 {
		return nil, left
	}
	kept, err := json.Marshal(e, asKubernetes())
	if err != nil {
		return nil, allUnread
	}
	return kept, left
}

// readSubjects reads the first subjects that can be read, and counts the others.
func readSubjects(d *jsontext.Decoder) (subjects []jsontext.Value, left unread, err error) {
	if d.PeekKind() != jsontext.KindBeginArray {
		return nil, allUnread, d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, 0, err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		text, err := d.ReadValue()
		if err != nil {
			return nil, 0, err
		}
		var s v1alpha1.Subject
		if len(subjects) == nodescope.MaxListed || len(text) > maxSubject || json.Unmarshal(text, &s, asKubernetes()) != nil {
			left++
			continue
		}
		subjects = append(subjects, text.Clone())
	}
	_, err = d.ReadToken()
	return subjects, left, err
}

// String says in a message what is not refused; it is empty if everything is read.
func (u unread) String() string {
	switch u {
	case 0:
		return ""
	case allUnread:
		return "; subjects that are not read, and whose accounts are not refused: all"
	}
	return fmt.Sprintf("; subjects that are not read, and whose accounts are not refused: %d", int(u))
}
