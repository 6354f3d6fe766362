package source

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// rowDecoder decodes the objects of a section of a snapshot. Objects of one shape are decoded once: for
// each of them, the strings in which they differ are set in the same object. So it may only be given to
// those who keep nothing of an object but strings, as the state does of the kinds in sharesObjects.
type rowDecoder struct {
	kind         kind
	forInventory bool
	text         []byte
	shapes       map[int]*shapedObject
}

// openShapes is how many decoded shapes are kept. Objects next to each other have few shapes.
const openShapes = 256

func newRowDecoder(k kind, forInventory bool) *rowDecoder {
	return &rowDecoder{kind: k, forInventory: forInventory, shapes: map[int]*shapedObject{}}
}

// sharesObjects reports whether a state keeps only strings of the objects of a kind.
func sharesObjects(k kind) bool {
	switch k {
	case kindPod, kindPersistentVolume, kindPersistentVolumeClaim, kindVolumeAttachment:
		return true
	}
	return false
}

// decode decodes an object from its text.
func (d *rowDecoder) decode(r *snapshot.Row) (apiObject, error) {
	var err error
	if d.text, err = r.AppendText(d.text[:0]); err != nil {
		return nil, err
	}
	o, err := d.decodeText(d.text)
	if err != nil {
		return nil, r.Invalid(err)
	}
	if err := sameNames(o, r); err != nil {
		return nil, err
	}
	return o, nil
}

func (d *rowDecoder) decodeText(text []byte) (apiObject, error) {
	return decodeObject(d.kind, d.forInventory, func(into any) error { return json.Unmarshal(text, into) })
}

// sameNames checks that the object is the one that the index of the snapshot names.
func sameNames(o apiObject, r *snapshot.Row) error {
	node := r.Value(snapshot.Node)
	switch o := o.(type) {
	case *corev1.Pod:
		node = o.Spec.NodeName
	case *storagev1.VolumeAttachment:
		node = o.Spec.NodeName
	}
	if o.GetName() != r.Value(snapshot.Name) || o.GetNamespace() != r.Value(snapshot.Namespace) || node != r.Value(snapshot.Node) {
		return r.Damaged()
	}
	return nil
}

// shaped returns the object of a row; nil if objects of its shape have to be decoded each. It is
// valid until the next call.
func (d *rowDecoder) shaped(r *snapshot.Row) (*shapedObject, error) {
	s, known := d.shapes[r.Shape]
	if !known {
		text, err := r.ShapeText()
		if err != nil {
			return nil, err
		}
		if s, err = d.newShaped(text); err != nil {
			return nil, r.Invalid(err)
		}
		if len(d.shapes) >= openShapes {
			clear(d.shapes)
		}
		d.shapes[r.Shape] = s
	}
	if s == nil {
		return nil, nil
	}
	s.fill(r)
	return s, sameNames(s.api, r)
}

// set adds an object to the state. Done is false if it has to be decoded alone.
func (d *rowDecoder) set(s *State, r *snapshot.Row) (done bool, err error) {
	if !sharesObjects(d.kind) || r.UIDText != "" {
		return false, nil
	}
	shaped, err := d.shaped(r)
	if shaped == nil || err != nil {
		return false, err
	}
	switch o := shaped.api.(type) {
	case *corev1.Pod:
		err = s.setShapedPod(o, shaped, r)
	case *corev1.PersistentVolume:
		err = s.setShapedVolume(o, shaped)
	default:
		_, err = s.set(d.kind, o, 0)
	}
	return true, err
}

// escapedMark begins the marks of columns in the JSON of a shape.
const escapedMark = `\u000`

// newShaped decodes a shape; nil if objects of it cannot be shared.
func (d *rowDecoder) newShaped(shape []byte) (*shapedObject, error) {
	if bytes.Contains(shape, []byte(escapedMark)) {
		return nil, nil // a string has such a mark itself
	}
	d.text = d.text[:0]
	for _, b := range shape {
		if b < ' ' {
			d.text = fmt.Appendf(d.text, `%s%x`, escapedMark, b)
		} else {
			d.text = append(d.text, b)
		}
	}
	o, err := d.decodeText(d.text)
	if err != nil {
		return nil, err
	}
	return newShapedObject(o)
}
