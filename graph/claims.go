package graph

import "github.com/node-authorizer/node-authorizer/verdict"

// Claims returns the claims through which volumes lead to nodes from a persistent volume, or from
// a secret that volumes refer to, in any order. It is empty for other kinds.
func (g *Graph) Claims(kind Kind, namespace, name string) []verdict.Object {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.object(kind, namespace, name)
	switch {
	case v == nil || kind != Secret && kind != PersistentVolume:
		return nil
	case kind == PersistentVolume:
		return []verdict.Object{v.links[0].other.object()}
	}
	var claims []verdict.Object
	for _, back := range v.links {
		if back.at > 0 && back.other.kind() == PersistentVolume {
			claims = append(claims, back.other.links[0].other.object())
		}
	}
	return claims
}
