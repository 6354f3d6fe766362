package crdtest

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckDeepCopy fills every field of an object, copies it, and looks for differences and for shared
// memory.
func CheckDeepCopy(t *testing.T, object runtime.Object) {
	t.Helper()
	original := reflect.ValueOf(object).Elem()
	fill(t, original)
	copied := object.DeepCopyObject()
	if !reflect.DeepEqual(object, copied) {
		t.Errorf("copy is\n%+v\nwant\n%+v", copied, object)
	}
	checkNotShared(t, original.Type().Name(), original, reflect.ValueOf(copied).Elem())
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_800_000_000, 0))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.ObjectMeta]() {
			v.FieldByName("Labels").Set(reflect.ValueOf(map[string]string{"a": "b"}))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("%s: fields of this type are not filled", v.Type())
	}
}

func checkNotShared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	if a.Type() == reflect.TypeFor[metav1.Time]() {
		return // its pointer to a location is never written
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			checkNotShared(t, path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		for i := range a.Len() {
			checkNotShared(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			checkNotShared(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}
