package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// plain dereferences pointer types, and returns nil for types that decode themselves:
// such types check their values.
func plain(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return nil
	}
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	return t
}

// elementOf returns the type of the values in a list or map.
func elementOf(t reflect.Type) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return t.Elem()
	}
	return nil
}

// field is a key of a struct, and the type of its value.
type field struct {
	name  string
	value reflect.Type
}

// fieldsOf lists the fields of a struct and of those that are embedded in it.
func fieldsOf(object reflect.Type) []field {
	var fields []field
	for i := range object.NumField() {
		f := object.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			fields = append(fields, fieldsOf(plain(f.Type))...)
		case name == "":
			fields = append(fields, field{f.Name, f.Type})
		default:
			fields = append(fields, field{name, f.Type})
		}
	}
	return fields
}

// find returns the index of the field that a key names, or -1. If it names none,
// it returns the name of a field that differs from the key in case only.
func find(fields []field, key string) (index int, similar string) {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == key }); i >= 0 {
		return i, ""
	}
	if i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, key) }); i >= 0 {
		return -1, fields[i].name
	}
	return -1, ""
}
