package render

import (
	"cmp"
	"fmt"
	"maps"
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
	groups   map[verdict.Object]string
	colours  map[verdict.Object]string
}

type edge struct {
	from, to verdict.Object
	label    string
	dashed   bool
}

// NewGraph returns an empty drawing with a title.
func NewGraph(title string) *Graph {
	return &Graph{
		title: title, vertices: map[verdict.Object]bool{}, edges: map[edge]bool{},
		groups: map[verdict.Object]string{}, colours: map[verdict.Object]string{},
	}
}

// Vertex adds an object.
func (g *Graph) Vertex(o verdict.Object) { g.vertices[o] = true }

// Edge adds an arrow with a label, and the objects at its ends. It may have dashes.
func (g *Graph) Edge(from, to verdict.Object, label string, dashed bool) {
	g.Vertex(from)
	g.Vertex(to)
	g.edges[edge{from, to, label, dashed}] = true
}

// Group draws objects of one group in one frame.
func (g *Graph) Group(o verdict.Object, group string) { g.groups[o] = group }

// Colour fills an object with a colour of Graphviz.
func (g *Graph) Colour(o verdict.Object, colour string) { g.colours[o] = colour }

// Path adds every edge of a path, labelled with its field.
func (g *Graph) Path(path verdict.Path) {
	for _, e := range path {
		g.Edge(e.From, e.To, e.Field, false)
	}
}

// encode writes the drawing in the dot language of Graphviz, sorted.
// Source: https://graphviz.org/doc/info/lang.html
func (g *Graph) encode() []byte {
	vertices := slices.SortedFunc(maps.Keys(g.vertices), verdict.Object.Compare)
	edges := slices.SortedFunc(maps.Keys(g.edges), func(a, b edge) int {
		return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to), strings.Compare(a.label, b.label))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quote(g.title))
	g.vertex(&b, vertices, "", "  ")
	groups := slices.Sorted(maps.Values(g.groups))
	for i, group := range slices.Compact(groups) {
		fmt.Fprintf(&b, "  subgraph \"cluster %d\" {\n    label=%s;\n    style=rounded;\n    color=gray;\n", i, quote(group))
		g.vertex(&b, vertices, group, "    ")
		b.WriteString("  }\n")
	}
	for _, e := range edges {
		dashed := ""
		if e.dashed {
			dashed = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", quote(id(e.from)), quote(id(e.to)), quote(e.label), dashed)
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// vertex writes the objects of one group.
func (g *Graph) vertex(b *strings.Builder, vertices []verdict.Object, group, indent string) {
	for _, o := range vertices {
		if g.groups[o] != group {
			continue
		}
		colour := ""
		if c := g.colours[o]; c != "" {
			colour = fmt.Sprintf(", style=filled, fillcolor=%s", quote(c))
		}
		fmt.Fprintf(b, "%s%s [label=%s%s%s];\n", indent, quote(id(o)), label(o), attributes(o), colour)
	}
}

// id is unique for an object: kinds have no spaces.
func id(o verdict.Object) string {
	return o.Kind + " " + ObjectName(o)
}

// label puts the kind over the name. The line break is an escape of the dot
// language, so it goes in after quoting.
func label(o verdict.Object) string {
	return strings.TrimSuffix(quote(o.Kind), `"`) + `\n` + strings.TrimPrefix(quote(ObjectName(o)), `"`)
}

// ObjectName is NAMESPACE/NAME, or NAME.
func ObjectName(o verdict.Object) string { return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/") }

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
