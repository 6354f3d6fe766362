package attackpaths

import "github.com/node-authorizer/node-authorizer/inventory"

// escapePlanned leads from a pod that is not bound yet, and that has rights over its host, to each node
// that may get it.
func (b *builder) escapePlanned(v vertex, i int32) {
	p := b.pods[i]
	none := func(string) bool { return false }
	for n := range b.nodes {
		if node := &b.nodes[n]; p.Placement.Allows(node, none) {
			to := b.vertex(key{kind: isNode, name: node.Name})
			b.step(PodEscape, v, to, i, allOf(p.Escapes[0].DependsOn, dependsOnPlacement))
		}
	}
}

// withRequests are the placements for which the size of a node matters.
func withRequests(all []*placed) []inventory.Placement {
	var sized []inventory.Placement
	for _, p := range all {
		if p.placement.HasRequests() {
			sized = append(sized, p.placement)
		}
	}
	return sized
}

// sizeOf is the same for nodes that are large enough for the same pods.
func sizeOf(n *inventory.Node, sized []inventory.Placement) string {
	fits := make([]byte, len(sized))
	for i, p := range sized {
		if p.Fits(n) {
			fits[i] = 1
		}
	}
	return string(fits)
}
