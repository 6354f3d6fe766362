package manifest

import "strings"

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
