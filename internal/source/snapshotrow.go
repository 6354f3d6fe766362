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
	// names are the interned names of the section, by their position; zero if they are not yet.
	names []interned
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
	return o, sameNames(o, r)
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

// shaped returns the object that a row shares; nil if it has to be decoded alone.
func (d *rowDecoder) shaped(r *snapshot.Row) (*shapedObject, error) {
	if !sharesObjects(d.kind) || r.UIDText != "" || !simple(r) {
		return nil, nil
	}
	s, known := d.shapes[r.Shape]
	if known {
		return s, nil
	}
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
	return s, nil
}

// simple reports whether the strings of a row are the same in JSON.
func simple(r *snapshot.Row) bool {
	for _, c := range [...]snapshot.Column{snapshot.Name, snapshot.Namespace, snapshot.Node, snapshot.Other, snapshot.Scope} {
		for _, b := range []byte(r.Value(c)) {
			if b <= ' ' || b > '~' || b == '"' || b == '\\' {
				return false
			}
		}
	}
	return true
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
