package graph

// ExtendedResourceClaimField is where a pod names the claim that was made for its
// extended resources. Pods have it since Kubernetes 1.34 (KEP-5004).
const ExtendedResourceClaimField = "status.extendedResourceClaimStatus"

// HasPathWithoutExtended is HasPath for a resource claim in a cluster whose pods have
// no [ExtendedResourceClaimField]: a relation through that field does not count.
// While no pod of the graph has had it, it costs the same as HasPath; after that it
// takes a read lock and checks each pod that names the claim.
func (g *Graph) HasPathWithoutExtended(node, namespace, name string) bool {
	if !g.HasPath(node, ResourceClaim, namespace, name) {
		return false
	}
	if !g.extended.Load() {
		return true
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	claim := g.object(ResourceClaim, namespace, name)
	if claim == nil {
		return false
	}
	for _, back := range claim.links {
		if back.place.field() != fieldExtendedResourceClaim && back.other.links[0].other.name == node {
			return true
		}
	}
	return false
}

// noteExtended is called before the targets of refs are related.
func (g *Graph) noteExtended(refs references) {
	if g.extended.Load() {
		return
	}
	for i := range refs {
		if refs[i].field == fieldExtendedResourceClaim {
			g.extended.Store(true)
			return
		}
	}
}
