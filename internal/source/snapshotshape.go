package source

import (
	"reflect"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// shapedObject is an object that all rows of a shape share. One goroutine fills it, row by row; what
// records need is the same for all rows, or made from a row's strings alone.
type shapedObject struct {
	api   apiObject
	holes []hole
	// mirror is true for mirror pods. Account is the service account of pods, volume the volume of
	// claims, and rest what the record of a pod or volume keeps besides, as JSON.
	mirror                bool
	account, volume, rest *pattern
}

// hole is a string of the object that a row fills.
type hole struct {
	value reflect.Value
	pattern
}

// marks are the bytes that stand for columns.
const marks = "\x01\x02\x03\x04\x05\x06"

// newShapedObject finds the strings to fill. It returns nil if rows cannot share the object.
func newShapedObject(o apiObject) (*shapedObject, error) {
	s := &shapedObject{api: o}
	if !s.find(reflect.ValueOf(o).Elem()) {
		return nil, nil
	}
	var rest interned
	var err error
	switch o := o.(type) {
	case *corev1.Pod:
		if len(o.Spec.ResourceClaims) > 0 {
			return nil, nil // claims without a name are recorded besides
		}
		o.UID = "" // rows have it
		_, s.mirror = o.Annotations[corev1.MirrorPodAnnotationKey]
		s.account = newPattern(o.Spec.ServiceAccountName)
		rest, err = encodeRecord(&podRest{Volumes: tokenVolumes(o.Spec.Volumes)})
	case *corev1.PersistentVolume:
		var r volumeRecord
		r, err = newVolumeRecord(o)
		rest = r.source
	case *corev1.PersistentVolumeClaim:
		s.volume = newPattern(o.Spec.VolumeName)
		return s, nil
	default:
		return s, nil
	}
	s.rest = newPattern(unescapedMarks(rest.Value()))
	return s, err
}

// unescapedMarks replaces the escapes of marks in JSON by the marks.
func unescapedMarks(json string) string {
	for i := range marks {
		json = strings.ReplaceAll(json, escapedMark+string('1'+rune(i)), marks[i:i+1])
	}
	return json
}

// find collects the holes below a value. It returns false if there is one that cannot be set.
func (s *shapedObject) find(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[types.UID]() || !strings.ContainsAny(v.String(), marks) {
			return true // others set the uid
		}
		s.holes = append(s.holes, hole{v, *newPattern(v.String())})
	case reflect.Pointer:
		return v.IsNil() || s.find(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() && !s.find(field) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !s.find(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			for _, part := range []reflect.Value{entries.Key(), entries.Value()} {
				if part.Kind() == reflect.String && strings.ContainsAny(part.String(), marks) {
					return false
				}
			}
		}
	}
	return true
}

// fill sets the strings of a row.
func (s *shapedObject) fill(r *snapshot.Row) {
	for i := range s.holes {
		s.holes[i].value.SetString(s.holes[i].of(r))
	}
}

// pattern is a text with marks of columns.
type pattern struct {
	texts   []string // one more than columns
	columns []snapshot.Column
	// last is the text of the last row, interned; without columns that of all rows.
	last interned
}

func newPattern(text string) *pattern {
	p := &pattern{last: unique.Make(text)}
	for {
		at := strings.IndexAny(text, marks)
		if at < 0 {
			p.texts = append(p.texts, text)
			return p
		}
		p.texts, p.columns = append(p.texts, text[:at]), append(p.columns, snapshot.Column(text[at]-1))
		text = text[at+1:]
	}
}

// of returns the text of a row.
func (p *pattern) of(r *snapshot.Row) string {
	switch {
	case len(p.columns) == 0:
		return p.texts[0]
	case len(p.columns) == 1 && p.texts[0] == "" && p.texts[1] == "":
		return r.Value(p.columns[0])
	}
	var text strings.Builder
	for i, c := range p.columns {
		text.WriteString(p.texts[i])
		text.WriteString(r.Value(c))
	}
	text.WriteString(p.texts[len(p.columns)])
	return text.String()
}

// interned returns the text of a row, which is often that of the row before.
func (p *pattern) interned(r *snapshot.Row) interned {
	if len(p.columns) > 0 {
		if text := p.of(r); p.last.Value() != text {
			p.last = unique.Make(text)
		}
	}
	return p.last
}
