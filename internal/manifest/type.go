package manifest

import "strings"

// Type is what an object says it is, or its list says of it. A field is empty if
// nothing says it.
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

// element is the type of items that do not say it themselves, as in what the API
// serves.
func (t Type) element() Type {
	if t.Kind == "List" {
		return Type{}
	}
	return Type{APIVersion: t.APIVersion, Kind: strings.TrimSuffix(t.Kind, "List")}
}
