package graph

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Nearest says who refers to an object: what there is instead of a path that
// was asked for.
type Nearest struct {
	// Paths lead from the object to nodes; those that break off before a node
	// (a volume whose claim no pod uses) come last.
	Paths []verdict.Path `json:"paths,omitempty"`
	// Nodes that reach the object, sorted.
	Nodes []string `json:"nodes,omitempty"`
	// TotalNodes is the number of nodes that reach the object, also where
	// Nodes was cut.
	TotalNodes int `json:"totalNodes"`
}

// nearestScan bounds how many references to one object Nearest looks at, so
// that its cost does not follow the fan-out.
const (
	nearestScan = 1000
	claimScan   = 16 // references to the claim of each volume
)

// Nearest returns up to limit paths from the object to any nodes, and up to
// limit of the nodes. Of an object with more than a thousand references it
// looks at a thousand.
func (g *Graph) Nearest(kind Kind, namespace, name string, limit int) Nearest {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.vertices.find(kind, namespace, name)
	if v == nil {
		return Nearest{}
	}
	paths := g.pathsFrom(v, nearestScan)
	slices.SortFunc(paths, func(p, q verdict.Path) int {
		if pc, qc := complete(p), complete(q); pc != qc {
			if pc {
				return -1
			}
			return 1
		}
		return comparePaths(p, q)
	})
	var nodes []string
	v.eachNode(func(node *vertex) {
		if len(nodes) < nearestScan {
			nodes = append(nodes, node.name)
		}
	})
	slices.Sort(nodes)
	return Nearest{
		Paths:      paths[:min(limit, len(paths))],
		Nodes:      nodes[:min(limit, len(nodes))],
		TotalNodes: v.nodeCount(),
	}
}

func complete(p verdict.Path) bool { return p[len(p)-1].To.Kind == Node.String() }

// pathsFrom returns a path from v through each of up to scan references to it,
// as far as it leads.
func (g *Graph) pathsFrom(v *vertex, scan int) []verdict.Path {
	if v.kind.holds() {
		return []verdict.Path{g.onwards(v)}
	}
	var paths []verdict.Path
	for _, back := range v.links[:min(scan, len(v.links))] {
		holder := back.other
		if back.at == 0 {
			continue // the holder's own node or claim: leads away from the node
		}
		paths = append(paths, append(verdict.Path{g.edge(holder, int(back.at))}, g.onwards(holder)...))
	}
	return paths
}

// onwards returns the path from a holder towards a node: for a pod to its node,
// for a volume through its claim to the node of a pod that uses it.
func (g *Graph) onwards(holder *vertex) verdict.Path {
	path := verdict.Path{g.ownEdge(holder)}
	if holder.kind != PersistentVolume {
		return path
	}
	var best verdict.Path
	for _, p := range g.pathsFrom(holder.links[0].other, claimScan) {
		if best == nil || comparePaths(p, best) < 0 {
			best = p
		}
	}
	return append(path, best...)
}

// NodesReaching returns the names of all nodes that reach the object, sorted.
func (g *Graph) NodesReaching(kind Kind, namespace, name string) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.vertices.find(kind, namespace, name)
	if v == nil {
		return nil
	}
	nodes := make([]string, 0, v.nodeCount())
	v.eachNode(func(node *vertex) { nodes = append(nodes, node.name) })
	slices.Sort(nodes)
	return nodes
}

// Nodes returns the names of all nodes that something is related to, sorted.
func (g *Graph) Nodes() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	nodes := make([]string, 0, g.kinds[Node])
	g.vertices.each(func(v *vertex) {
		if v.kind == Node {
			nodes = append(nodes, v.name)
		}
	})
	slices.Sort(nodes)
	return nodes
}

// Stats is the size of a graph.
type Stats struct {
	// Vertices is the number of objects and nodes by kind.
	Vertices map[Kind]int
	// Links is the number of references between them.
	Links int
}

// Stats returns the size of the graph.
func (g *Graph) Stats() Stats {
	g.mu.RLock()
	defer g.mu.RUnlock()
	stats := Stats{Vertices: make(map[Kind]int, kindCount), Links: g.links}
	for kind, n := range g.kinds {
		if n > 0 {
			stats.Vertices[Kind(kind)] = n
		}
	}
	return stats
}
