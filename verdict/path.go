package verdict

import "strings"

// Object names one API object. Namespace is empty for cluster-scoped kinds.
type Object struct {
	// Kind is the Kubernetes kind: Secret, PersistentVolumeClaim, Node. In attack paths it may also be
	// ClusterAdmin, User or Group.
	Kind string `json:"kind"`
	// Namespace and Name are in the object's metadata.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the object in the form that people use: "secret shop/db", "node
// worker-1".
func (o Object) String() string { return string(o.AppendTo(make([]byte, 0, 128))) }

// AppendTo appends the text of String to b.
func (o Object) AppendTo(b []byte) []byte {
	b = append(append(b, lower(o.Kind)...), ' ')
	if o.Namespace != "" {
		b = append(append(b, o.Namespace...), '/')
	}
	return append(b, o.Name...)
}

// lower avoids an allocation for the most frequent kinds.
func lower(kind string) string {
	switch kind {
	case "Pod":
		return "pod"
	case "Node":
		return "node"
	case "Secret":
		return "secret"
	case "ConfigMap":
		return "configmap"
	}
	return strings.ToLower(kind)
}

// Compare orders objects by kind, namespace and name.
func (o Object) Compare(p Object) int {
	if c := strings.Compare(o.Kind, p.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(o.Namespace, p.Namespace); c != 0 {
		return c
	}
	return strings.Compare(o.Name, p.Name)
}

// Edge is one reference: a node that reaches To also reaches From, because the Field of
// the object Holder names it. Holder is From or To.
type Edge struct {
	// From is the object that is reached through the object To.
	From Object `json:"from"`
	To   Object `json:"to"`
	// Holder is the object that a person would edit to remove the edge.
	Holder Object `json:"holder"`
	// Field is the place in Holder, for example
	// "spec.containers[name=api].env" or "spec.volumes[name=data]".
	Field string `json:"field"`
}

// Path is a chain of edges; each edge's To is the next one's From.
type Path []Edge

// String renders the chain from its first object to its last:
// "secret shop/db <- pod shop/api (spec.containers[name=api].env) <- node worker-2".
func (p Path) String() string {
	if len(p) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(p[0].From.String())
	for _, e := range p {
		b.WriteString(" <- ")
		b.WriteString(e.To.String())
		if e.Field != "spec.nodeName" {
			b.WriteString(" (" + e.Field + ")")
		}
	}
	return b.String()
}
