package graph

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// HasPods reports whether any pod, including mirror pods, is bound to the node.
func (g *Graph) HasPods(node string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := g.vertices.find(Node, "", node)
	return n != nil && slices.ContainsFunc(n.links, func(l link) bool { return l.other.kind() == Pod })
}

// UnboundClaims returns the references from pods on the node to claims that no
// volume is bound to: for each claim the first one, sorted by claim.
func (g *Graph) UnboundClaims(node string) []verdict.Edge {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var unbound []verdict.Edge
	g.eachClaim(node, func(pod *vertex, i int, claim *vertex) {
		bound := false
		eachVolume(claim, func(*vertex) { bound = true })
		if !bound {
			unbound = append(unbound, g.edge(pod, i))
		}
	})
	slices.SortFunc(unbound, func(a, b verdict.Edge) int {
		return comparePaths(verdict.Path{a}, verdict.Path{b})
	})
	return slices.CompactFunc(unbound, func(a, b verdict.Edge) bool { return a.From == b.From })
}

// Objects returns the objects of a kind that the node is related to, by namespace and
// name. It is cheaper than [Graph.Reach], which also returns the paths.
func (g *Graph) Objects(node string, kind Kind) []verdict.Object {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := g.vertices.find(Node, "", node)
	if n == nil {
		return nil
	}
	objects := make([]verdict.Object, 0, len(n.links))
	g.eachReached(n, func(v *vertex, _ func() verdict.Path) {
		if v.kind() == kind {
			objects = append(objects, v.object())
		}
	})
	slices.SortFunc(objects, verdict.Object.Compare)
	return slices.Compact(objects)
}

// eachClaim visits the persistent volume claims that the pods on the node name: the i-th link of
// the pod leads to the claim. The caller holds g.mu.
func (g *Graph) eachClaim(node string, visit func(pod *vertex, i int, claim *vertex)) {
	n := g.vertices.find(Node, "", node)
	if n == nil {
		return
	}
	for _, back := range n.links {
		pod := back.other
		if pod.kind() != Pod {
			continue
		}
		for i := range pod.links {
			// The field says enough: most links lead elsewhere, and reading their vertices takes longest.
			switch l := &pod.links[i]; l.place.field() {
			case fieldVolumeClaim, fieldVolumeEphemeral:
				visit(pod, i, l.other)
			}
		}
	}
}
