// Package search finds what is reached in a graph, and the shortest way to it. An edge leads from one vertex to another; a
// join leads from several vertices together. What vertices and edges stand for is the caller's.
package search

import "sync"

// Vertex is the place of a vertex in a graph.
type Vertex int32

// None is no vertex.
const None Vertex = -1

// Row is the caller's row for what an edge stands for; an edge with the row zero is a part of the step that follows or comes
// before, and costs nothing. Any other costs one step.
type Row uint8

// Edge leads from one vertex to another.
type Edge struct {
	To Vertex
	// Arg is the caller's.
	Arg int32
	// DependsOn is the caller's condition on which the edge depends; an edge with a condition is only possible. Zero is none.
	DependsOn int32
	Row       Row
}

func (e Edge) steps() int32 {
	if e.Row == 0 {
		return 0
	}
	return 1
}

// Join leads from several vertices together to another.
type Join struct {
	From []Vertex
	Edge
}

// Graph is safe for concurrent use once it is made.
type Graph struct {
	// Out are the edges of each vertex.
	Out   [][]Edge
	Joins []Join
	// JoinsOf are the places of the joins that a vertex is a part of.
	JoinsOf [][]int32

	// solvers are those that are not in use.
	solvers sync.Pool
}

// New makes a graph without vertices, with room for so many.
func New(room int) *Graph {
	return &Graph{Out: make([][]Edge, 0, room), JoinsOf: make([][]int32, 0, room)}
}

// AddVertex adds a vertex without edges.
func (g *Graph) AddVertex() Vertex {
	g.Out, g.JoinsOf = append(g.Out, nil), append(g.JoinsOf, nil)
	return Vertex(len(g.Out) - 1)
}

// AddEdge adds an edge from a vertex.
func (g *Graph) AddEdge(from Vertex, e Edge) { g.Out[from] = append(g.Out[from], e) }

// AddJoin adds a join from vertices that differ; from one vertex it is an edge.
func (g *Graph) AddJoin(e Edge, from []Vertex) {
	if len(from) == 1 {
		g.AddEdge(from[0], e)
		return
	}
	place := int32(len(g.Joins))
	g.Joins = append(g.Joins, Join{from, e})
	for _, v := range from {
		g.JoinsOf[v] = append(g.JoinsOf[v], place)
	}
}

// Parts are the vertices that a step needs; none for a start.
func (g *Graph) Parts(how Via) []Vertex {
	switch {
	case how.Join >= 0:
		return g.Joins[how.Join].From
	case how.From == None:
		return nil
	}
	return []Vertex{how.From}
}

// Reversed returns the graph with each edge turned round and without steps: a search in it finds what leads to a vertex,
// the nearest first. Parts selects the vertices of a join that lead to where it does; without parts, none does.
func (g *Graph) Reversed(possible bool, parts func(*Join) []Vertex) *Graph {
	r := &Graph{Out: make([][]Edge, len(g.Out)), JoinsOf: make([][]int32, len(g.Out))}
	for v := range g.Out {
		for i := range g.Out[v] {
			if e := &g.Out[v][i]; possible || e.DependsOn == 0 {
				r.AddEdge(e.To, Edge{To: Vertex(v)})
			}
		}
	}
	for i := range g.Joins {
		if j := &g.Joins[i]; parts != nil && (possible || j.DependsOn == 0) {
			for _, v := range parts(j) {
				r.AddEdge(j.To, Edge{To: v})
			}
		}
	}
	return r
}
