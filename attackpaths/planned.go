package attackpaths

import "github.com/node-authorizer/node-authorizer/inventory"

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
