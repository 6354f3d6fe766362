package graph

import "sync"

// firsts caches the first references to objects with many references, so that
// repeated questions about an object cost one search until the graph changes. Writers
// and readers of the graph exclude each other; mu synchronizes readers.
type firsts struct {
	mu    sync.Mutex
	found map[firstsKey][]link
}

type firstsKey struct {
	object *vertex
	limit  int
}

const (
	// manyReferences is the number of references from which on they are cached.
	manyReferences = 64
	// maxFirsts is the maximum number of cached objects, and maxKept the maximum number
	// of references of each.
	maxFirsts, maxKept = 1024, 8
)

// references is firstReferences with a cache that is valid until the next change.
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

// forget empties the cache. Every change of the graph calls it.
func (f *firsts) clear() { f.found = nil }
