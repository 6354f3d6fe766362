package graph

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Path returns one path from the object to the node, the shortest and of these
// the first in order, or nil when there is none.
func (g *Graph) Path(node string, kind Kind, namespace, name string) verdict.Path {
	if paths := g.Paths(node, kind, namespace, name); len(paths) > 0 {
		return paths[0]
	}
	return nil
}

// Paths returns every path from the object to the node: one for each field that would
// have to change to remove the relation. Shorter ones come first. Its cost depends on
// the objects that the node's own pods name, not on other references to the object.
func (g *Graph) Paths(node string, kind Kind, namespace, name string) []verdict.Path {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v, n := g.object(kind, namespace, name), g.vertices.find(Node, "", node)
	if v == nil || n == nil {
		return nil
	}
	var paths []verdict.Path
	g.eachReached(n, func(reached *vertex, path func() verdict.Path) {
		if reached == v {
			paths = append(paths, path())
		}
	})
	return sortedPaths(paths)
}

// sortedPaths sorts paths and removes duplicates: a container may name an object in
// several environment variables.
func sortedPaths(paths []verdict.Path) []verdict.Path {
	slices.SortFunc(paths, comparePaths)
	return slices.CompactFunc(paths, func(p, q verdict.Path) bool { return comparePaths(p, q) == 0 })
}

// PathsByNode returns every path from the object to each node that reaches it, by the
// name of the node, the shortest first. Its cost depends on the references to the
// object.
func (g *Graph) PathsByNode(kind Kind, namespace, name string) map[string][]verdict.Path {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.object(kind, namespace, name)
	if v == nil {
		return nil
	}
	byNode := map[string][]verdict.Path{}
	g.eachPath(v, nil, func(path verdict.Path) {
		node := path[len(path)-1].To.Name
		byNode[node] = append(byNode[node], path)
	})
	for node, paths := range byNode {
		byNode[node] = sortedPaths(paths)
	}
	return byNode
}

// eachPath visits every path from v to a node, each continuing the path to v.
func (g *Graph) eachPath(v *vertex, toV verdict.Path, visit func(verdict.Path)) {
	follow := func(e verdict.Edge, next *vertex) {
		path := append(slices.Clip(toV), e)
		if next.kind() == Node {
			visit(path)
			return
		}
		g.eachPath(next, path, visit)
	}
	if v.kind().holds() {
		follow(g.ownEdge(v), v.links[0].other)
		return
	}
	for _, back := range v.links {
		if back.at > 0 { // not its own node or claim, which lead away from v
			follow(g.edge(back.other, int(back.at)), back.other)
		}
	}
}

// Reached is an object that a node is related to.
type Reached struct {
	Kind      Kind
	Namespace string
	Name      string
	// Paths are all paths to the node, the shortest first.
	Paths []verdict.Path
}

// Reach returns every object that the node is related to, in order of kind,
// namespace and name.
func (g *Graph) Reach(node string) []Reached {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := g.vertices.find(Node, "", node)
	if n == nil {
		return nil
	}
	paths := map[*vertex][]verdict.Path{}
	g.eachReached(n, func(v *vertex, path func() verdict.Path) {
		paths[v] = append(paths[v], path())
	})
	reached := make([]Reached, 0, len(paths))
	for v, all := range paths {
		reached = append(reached, Reached{Kind: v.kind(), Namespace: v.namespace.name, Name: v.name, Paths: sortedPaths(all)})
	}
	slices.SortFunc(reached, func(a, b Reached) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return reached
}

// eachReached visits every object that the node is related to, once for each path;
// path returns that path. The caller holds g.mu.
func (g *Graph) eachReached(node *vertex, visit func(v *vertex, path func() verdict.Path)) {
	for _, back := range node.links {
		holder := back.other
		toNode := func() verdict.Path { return verdict.Path{g.ownEdge(holder)} }
		visit(holder, toNode)
		if holder.kind() != Pod {
			continue
		}
		for i := 1; i < len(holder.links); i++ {
			target := holder.links[i].other
			toPod := func() verdict.Path { return append(verdict.Path{g.edge(holder, i)}, toNode()...) }
			visit(target, toPod)
			if target.kind() == PersistentVolumeClaim {
				g.eachOfClaim(target, toPod, visit)
			}
		}
	}
}

// eachOfClaim visits the volumes bound to a claim, and the secrets of these.
func (g *Graph) eachOfClaim(claim *vertex, toPod func() verdict.Path, visit func(v *vertex, path func() verdict.Path)) {
	eachVolume(claim, func(volume *vertex) {
		toClaim := func() verdict.Path { return append(verdict.Path{g.ownEdge(volume)}, toPod()...) }
		visit(volume, toClaim)
		for i := 1; i < len(volume.links); i++ {
			visit(volume.links[i].other, func() verdict.Path {
				return append(verdict.Path{g.edge(volume, i)}, toClaim()...)
			})
		}
	})
}

// ownEdge leads from a holder to its node or claim.
func (g *Graph) ownEdge(holder *vertex) verdict.Edge {
	l := holder.links[0]
	from := holder.object()
	return verdict.Edge{From: from, To: l.other.object(), Holder: from, Field: g.entries.path(l.place)}
}

// edge leads from the i-th object that a holder names to the holder.
func (g *Graph) edge(holder *vertex, i int) verdict.Edge {
	l := holder.links[i]
	to := holder.object()
	return verdict.Edge{From: l.other.object(), To: to, Holder: to, Field: g.entries.path(l.place)}
}

// comparePaths orders paths by length, then by their objects and fields.
func comparePaths(p, q verdict.Path) int {
	if len(p) != len(q) {
		return len(p) - len(q)
	}
	for i := range p {
		if c := p[i].From.Compare(q[i].From); c != 0 {
			return c
		}
		if c := p[i].To.Compare(q[i].To); c != 0 {
			return c
		}
		if c := strings.Compare(p[i].Field, q[i].Field); c != 0 {
			return c
		}
	}
	return 0
}
