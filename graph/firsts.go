package graph

import "sync"

// firsts keeps the first references to objects with many, so that questions about
// one of them cost one search in a graph that does not change, and not one each.
// Writers and readers of the graph exclude each other; mu is between readers.
type firsts struct {
	mu    sync.Mutex
	found map[firstsKey][]link
}

type firstsKey struct {
	object *vertex
	limit  int
}

const (
	// manyReferences is from how many references on they are kept.
	manyReferences = 64
	// maxFirsts is for how many objects, and maxKept how many of each.
	maxFirsts, maxKept = 1024, 8
)

// references is firstReferences, searched once between two changes.
func (g *Graph) references(v *vertex, limit int) []link {
	if len(v.links) < manyReferences || limit > maxKept {
		return g.firstReferences(v, limit)
	}
	key := firstsKey{v, limit}
	g.firsts.mu.Lock()
	found, known := g.firsts.found[key]
	g.firsts.mu.Unlock()
	if known {
		return found
	}
	found = g.firstReferences(v, limit)
	g.firsts.mu.Lock()
	defer g.firsts.mu.Unlock()
	if g.firsts.found == nil || len(g.firsts.found) >= maxFirsts {
		g.firsts.found = map[firstsKey][]link{}
	}
	g.firsts.found[key] = found
	return found
}

// forget is called by whoever changes the graph.
func (f *firsts) forget() { f.found = nil }
