package graph

// reference is one object that another names, as read from an API object.
type reference struct {
	kind      Kind
	field     field
	namespace string
	name      string
	entry     string // the list entry that names it: container, volume, claim
}

// references collects what one API object names. Empty names name nothing.
type references []reference

func (r *references) add(kind Kind, f field, namespace, name, entry string) {
	if name != "" {
		*r = append(*r, reference{kind: kind, field: f, namespace: namespace, name: name, entry: entry})
	}
}
