package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Graph is a drawing of objects and of the references between them. Adding the
// same vertex or edge again changes nothing.
type Graph struct {
	title    string
	vertices map[verdict.Object]bool
	edges    map[edge]bool
}

type edge struct {
	from, to verdict.Object
	label    string
}

// NewGraph returns an empty drawing with a title.
func NewGraph(title string) *Graph {
	return &Graph{title: title, vertices: map[verdict.Object]bool{}, edges: map[edge]bool{}}
}

// Vertex adds an object.
func (g *Graph) Vertex(o verdict.Object) { g.vertices[o] = true }

// Edge adds an arrow with a label, and the objects at its ends.
func (g *Graph) Edge(from, to verdict.Object, label string) {
	g.Vertex(from)
	g.Vertex(to)
	g.edges[edge{from, to, label}] = true
}

// Path adds every edge of a path, labelled with its field.
func (g *Graph) Path(path verdict.Path) {
	for _, e := range path {
		g.Edge(e.From, e.To, e.Field)
	}
}

// encode writes the drawing in the dot language of Graphviz, sorted.
// Source: https://graphviz.org/doc/info/lang.html
func (g *Graph) encode() []byte {
	var vertices []verdict.Object
	for o := range g.vertices {
		vertices = append(vertices, o)
	}
	slices.SortFunc(vertices, verdict.Object.Compare)
	var edges []edge
	for e := range g.edges {
		edges = append(edges, e)
	}
	slices.SortFunc(edges, compareEdges)

	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quote(g.title))
	for _, o := range vertices {
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", quote(id(o)), label(o), attributes(o))
	}
	for _, e := range edges {
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", quote(id(e.from)), quote(id(e.to)), quote(e.label))
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

func compareEdges(a, b edge) int {
	if c := a.from.Compare(b.from); c != 0 {
		return c
	}
	if c := a.to.Compare(b.to); c != 0 {
		return c
	}
	return strings.Compare(a.label, b.label)
}

// id is unique for an object: kinds have no spaces.
func id(o verdict.Object) string {
	return o.Kind + " " + place(o)
}

// label puts the kind over the name. The line break is an escape of the dot
// language, so it goes in after quoting.
func label(o verdict.Object) string {
	return strings.TrimSuffix(quote(o.Kind), `"`) + `\n` + strings.TrimPrefix(quote(place(o)), `"`)
}

func place(o verdict.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func attributes(o verdict.Object) string {
	switch o.Kind {
	case "Node":
		return ", shape=box3d"
	case "Pod":
		return ", style=rounded"
	}
	return ""
}

// quote writes a double-quoted identifier. Backslashes are doubled because
// labels would take them for escapes.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ").Replace(s) + `"`
}
