package manifest

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Type is the type that an object or its list states. A field is empty if neither
// states it.
type Type struct {
	APIVersion, Kind string
}

// Group is the API group; empty for the core group.
func (t Type) Group() string {
	group, _, found := strings.Cut(t.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Version is the version within the group: "v1".
func (t Type) Version() string {
	if _, version, found := strings.Cut(t.APIVersion, "/"); found {
		return version
	}
	return t.APIVersion
}

// isList reports whether the object holds items: a v1 List, or a list of one
// kind such as PodList.
func (t Type) isList() bool { return strings.HasSuffix(t.Kind, "List") }

// element returns the type of items without a type of their own, as in responses of
// the API.
func (t Type) element() Type {
	if t.Kind == "List" {
		return Type{}
	}
	return Type{APIVersion: t.APIVersion, Kind: strings.TrimSuffix(t.Kind, "List")}
}

// readType reads apiVersion and kind of an object. A field that is missing or not a
// string stays empty.
func readType(object []byte) (t Type) {
	decoder := lenient(bytes.NewBuffer(object))
	if _, err := decoder.ReadToken(); err != nil {
		return t
	}
	for t.APIVersion == "" || t.Kind == "" {
		name, err := decoder.ReadToken()
		if err != nil || name.Kind() != jsontext.KindString {
			return t
		}
		key := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return t
		}
		t.set(key, value)
	}
	return t
}

// set sets a field of the type from one member of an object.
func (t *Type) set(name string, value jsontext.Value) {
	if value.Kind() != jsontext.KindString {
		return
	}
	switch name {
	case "apiVersion":
		text, _ := jsontext.AppendUnquote(nil, value)
		t.APIVersion = string(text)
	case "kind":
		text, _ := jsontext.AppendUnquote(nil, value)
		t.Kind = string(text)
	}
}
