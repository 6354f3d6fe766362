package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Nearest describes the references to an object when the requested path does not
// exist.
type Nearest struct {
	// Paths lead from the object to nodes. Incomplete ones that do not reach a node
	// (a volume whose claim no pod uses) come last.
	Paths []verdict.Path `json:"paths,omitempty"`
	// TotalNodes is the number of nodes that reach the object.
	TotalNodes int `json:"totalNodes"`
}

// Nearest returns up to limit paths from the object to any nodes, the first in order:
// paths through pods come first, by namespace and name of the pod. The result does
// not depend on the order of changes. It scans every reference to the object; for
// objects with many references the result is cached until the graph changes.
func (g *Graph) Nearest(kind Kind, namespace, name string, limit int) Nearest {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.object(kind, namespace, name)
	if v == nil {
		return Nearest{}
	}
	return Nearest{Paths: g.nearestPaths(v, limit), TotalNodes: v.nodeCount()}
}

// nearestPaths returns a path through each of the first references to v, which may be
// incomplete.
func (g *Graph) nearestPaths(v *vertex, limit int) []verdict.Path {
	if v.kind().holds() {
		return []verdict.Path{g.onwards(nil, v)}
	}
	var paths []verdict.Path
	for _, ref := range g.references(v, limit) {
		path := append(make(verdict.Path, 0, 2), g.edge(ref.other, int(ref.at)))
		paths = append(paths, g.onwards(path, ref.other))
	}
	return paths
}

// firstReferences returns up to limit links from v back to its holders: first those
// through which nodes reach it, then by holder and field.
func (g *Graph) firstReferences(v *vertex, limit int) []link {
	var first []link
	for _, l := range v.links {
		if l.at == 0 {
			continue // its own node or claim: leads away from the node
		}
		if len(first) == limit && limit > 0 && g.compareReferences(l, first[limit-1]) >= 0 {
			continue
		}
		i, known := slices.BinarySearchFunc(first, l, g.compareReferences)
		if known || i == limit {
			continue
		}
		first = slices.Insert(first, i, l)
		first = first[:min(limit, len(first))]
	}
	return first
}

// compareReferences compares no more than is needed: each part is in memory of its own.
func (g *Graph) compareReferences(a, b link) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	if c := strings.Compare(a.other.namespace.name, b.other.namespace.name); c != 0 {
		return c
	}
	if c := strings.Compare(a.other.name, b.other.name); c != 0 {
		return c
	}
	if c := cmp.Compare(a.place.field(), b.place.field()); c != 0 {
		return c
	}
	return strings.Compare(g.entries.names[a.place.entry()].name, g.entries.names[b.place.entry()].name)
}

// rank orders links back to holders: pods, which are on a node, before volumes that nodes
// reach, before volumes that none reaches.
func rank(back link) int {
	switch {
	case back.place.field().ofPod():
		return 0
	case back.other.nodeCount() > 0:
		return 1
	}
	return 2
}

// onwards continues a path from a holder towards a node: from a pod to its node, from
// a volume through its claim to the node of the first pod that uses it.
func (g *Graph) onwards(path verdict.Path, holder *vertex) verdict.Path {
	path = append(path, g.ownEdge(holder))
	if holder.kind() == PersistentVolume {
		for _, ref := range g.references(holder.links[0].other, 1) {
			path = append(path, g.edge(ref.other, int(ref.at)), g.ownEdge(ref.other))
		}
	}
	return path
}

// NodesReaching returns the names of all nodes that reach the object, sorted.
func (g *Graph) NodesReaching(kind Kind, namespace, name string) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.object(kind, namespace, name)
	if v == nil {
		return nil
	}
	nodes := make([]string, 0, v.nodeCount())
	v.eachNode(func(node *vertex) { nodes = append(nodes, node.name) })
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
