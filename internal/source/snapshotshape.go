package source

import (
	"reflect"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// shapedObject is an object that many rows share.
type shapedObject struct {
	api   apiObject
	holes []hole
	// rest is what a record keeps of the object besides. Fixed is false if it differs from row to row.
	rest  interned
	fixed bool
	// account is that of the pod of the last row.
	account interned
}

// hole is a string of the object that a row fills.
type hole struct {
	value  reflect.Value
	before string
	column snapshot.Column
}

// marks are the bytes that stand for columns.
const marks = "\x01\x02\x03\x04\x05\x06"

// newShapedObject finds the strings to fill. It returns nil if rows cannot share the object.
func newShapedObject(o apiObject) (*shapedObject, error) {
	s := &shapedObject{api: o, account: unique.Make("")}
	if !s.find(reflect.ValueOf(o).Elem()) {
		return nil, nil
	}
	var err error
	switch o := o.(type) {
	case *corev1.Pod:
		o.UID = "" // rows have it
		s.rest, err = encodeRecord(&podRest{Volumes: tokenVolumes(o.Spec.Volumes)})
	case *corev1.PersistentVolume:
		var r volumeRecord
		r, err = newVolumeRecord(o)
		s.rest = r.source
	default:
		return s, nil
	}
	s.fixed = !strings.Contains(s.rest.Value(), escapedMark)
	return s, err
}

// find collects the holes below a value. It returns false if there is one that cannot be set.
func (s *shapedObject) find(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return s.findIn(v)
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

// findIn adds the hole of a string. It is at the end of the string, if there is one.
func (s *shapedObject) findIn(v reflect.Value) bool {
	text := v.String()
	at := strings.IndexAny(text, marks)
	if at < 0 {
		return true
	}
	column := snapshot.Column(text[at] - 1)
	if v.Type() == reflect.TypeFor[types.UID]() {
		return column == snapshot.UID // set by others
	}
	s.holes = append(s.holes, hole{value: v, before: text[:at], column: column})
	return at == len(text)-1
}

// fill sets the strings of a row.
func (s *shapedObject) fill(r *snapshot.Row) {
	for i := range s.holes {
		h := &s.holes[i]
		if h.before == "" {
			h.value.SetString(r.Value(h.column))
		} else {
			h.value.SetString(h.before + r.Value(h.column))
		}
	}
}

// setShapedPod adds a pod.
func (s *State) setShapedPod(pod *corev1.Pod, shaped *shapedObject, row *snapshot.Row) error {
	if shaped.account.Value() != pod.Spec.ServiceAccountName {
		shaped.account = unique.Make(pod.Spec.ServiceAccountName)
	}
	r := podRecord{uid: packedUID(row.UID), node: unique.Make(pod.Spec.NodeName), account: shaped.account, rest: shaped.rest}
	_, r.mirror = pod.Annotations[corev1.MirrorPodAnnotationKey]
	var err error
	if !shaped.fixed {
		r.rest, err = encodeRecord(&podRest{Volumes: tokenVolumes(pod.Spec.Volumes)})
	}
	key := keyOf(pod.Namespace, pod.Name)
	s.mu.Lock()
	if s.Inventory != nil {
		s.Inventory.SetPod(pod)
	}
	s.objects.pods[key] = r
	s.objects.setUnnamedClaims(key, pod)
	s.mu.Unlock()
	s.relate(pod)
	s.listeners.notify(pod)
	return err
}

// setShapedVolume adds a persistent volume.
func (s *State) setShapedVolume(pv *corev1.PersistentVolume, shaped *shapedObject) error {
	r := volumeRecord{source: shaped.rest}
	var err error
	if !shaped.fixed {
		r, err = newVolumeRecord(pv)
	}
	key := keyOf("", pv.Name)
	s.mu.Lock()
	s.objects.volumes[key] = r
	s.mu.Unlock()
	s.relate(pv)
	s.listeners.notify(pv)
	return err
}
