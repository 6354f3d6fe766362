package containment_test

import "sync"

// limit is a limit of nodes that a test sets.
type limit struct {
	mu    sync.Mutex
	nodes int
	known bool
}

func newLimit(nodes int, known bool) *limit { return &limit{nodes: nodes, known: known} }

func (l *limit) get() (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes, l.known
}

func (l *limit) set(nodes int, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes, l.known = nodes, known
}
