package nodeauthz

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// extendedSince is the minor since which pods have a claim for their extended
// resources (KEP-5004). State of a newer cluster may have them when the question is
// about an older version.
const extendedSince = 34

// ignores reports whether relations of a kind of object may depend on a field that
// pods of the authorizer's Kubernetes version do not have.
func (a *Authorizer) ignores(kind graph.Kind) bool {
	return kind == graph.ResourceClaim && a.features.Minor() < extendedSince
}

func (a *Authorizer) hasPath(node string, kind graph.Kind, namespace, name string) bool {
	if a.ignores(kind) {
		return a.graph.HasPathWithoutExtended(node, namespace, name)
	}
	return a.graph.HasPath(node, kind, namespace, name)
}

// path returns the first path from an object to a node that counts; nil if there is
// none.
func (a *Authorizer) path(node string, kind graph.Kind, namespace, name string) verdict.Path {
	if !a.ignores(kind) {
		return a.graph.Path(node, kind, namespace, name)
	}
	if paths := counting(a.graph.Paths(node, kind, namespace, name)); len(paths) > 0 {
		return paths[0]
	}
	return nil
}

// PathsByNode returns every path that counts from an object to each node that reaches
// it, by the name of the node, the shortest first.
func (a *Authorizer) PathsByNode(kind graph.Kind, namespace, name string) map[string][]verdict.Path {
	byNode := a.graph.PathsByNode(kind, namespace, name)
	if !a.ignores(kind) {
		return byNode
	}
	for node, paths := range byNode {
		if byNode[node] = counting(paths); len(byNode[node]) == 0 {
			delete(byNode, node)
		}
	}
	return byNode
}

// nearest is [graph.Graph.Nearest] with only the paths that count.
func (a *Authorizer) nearest(kind graph.Kind, namespace, name string, limit int) graph.Nearest {
	if !a.ignores(kind) {
		return a.graph.Nearest(kind, namespace, name, limit)
	}
	byNode := a.PathsByNode(kind, namespace, name)
	var all []verdict.Path
	for _, paths := range byNode {
		all = append(all, paths...)
	}
	slices.SortFunc(all, func(p, q verdict.Path) int {
		if c := p[0].To.Compare(q[0].To); c != 0 {
			return c
		}
		return strings.Compare(p[0].Field, q[0].Field)
	})
	return graph.Nearest{Paths: all[:min(limit, len(all))], TotalNodes: len(byNode)}
}

// counting removes paths through a field that pods do not have.
func counting(paths []verdict.Path) []verdict.Path {
	return slices.DeleteFunc(paths, func(p verdict.Path) bool { return p[0].Field == graph.ExtendedResourceClaimField })
}
