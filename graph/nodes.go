package graph

import "slices"

// Nodes returns the names of all nodes with relations, sorted.
func (g *Graph) Nodes() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	names := make([]string, len(g.nodes))
	for i, node := range g.nodes {
		names[i] = node.name
	}
	slices.Sort(names)
	return names
}

// addNode adds the vertex of a node to the list of all nodes. Its count is its position.
func (g *Graph) addNode(v *vertex) {
	v.count = uint32(len(g.nodes))
	g.nodes = append(g.nodes, v)
}

// removeNode moves the last node of the list to the position of v.
func (g *Graph) removeNode(v *vertex) {
	last := len(g.nodes) - 1
	moved := g.nodes[last]
	moved.count = v.count
	g.nodes[v.count] = moved
	g.nodes[last] = nil
	g.nodes = g.nodes[:last]
}
