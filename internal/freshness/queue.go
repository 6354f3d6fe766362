package freshness

import (
	"sync"
	"sync/atomic"
)

// question is what requests wait for an answer to.
type question struct {
	// key is the same for questions that have the same answer; nil for one that
	// is like no other.
	key any
	// probe reports, at little cost, whether the answer has changed; nil for
	// questions that have to be asked to know. It is called after the request
	// that it came with may be gone.
	probe func() bool
	// asked is the count of changes at which it was last asked.
	asked uint64
}

// queues are the requests that wait, by node.
type queues struct {
	maxPerNode, maxTotal int
	// changes counts changes. A question that was asked at one count and comes to
	// wait at the same has missed none.
	changes atomic.Uint64
	// waiting counts requests, so that changes cost nothing while none waits.
	waiting atomic.Int64

	mu     sync.Mutex
	byNode map[string]*queue
	// dirty are the nodes that changes concern; while there are any, one
	// goroutine looks at them.
	dirty    map[*queue]struct{}
	checking bool
}

// queue is the requests of one node.
type queue struct {
	node    string
	waiting int
	asked   map[any]*asked
}

// asked is a question and the requests that wait for its answer.
type asked struct {
	probe func() bool
	turns map[*turn]struct{}
}

// turn is one request that waits.
type turn struct {
	queue *queue
	key   any
	wake  chan struct{} // holds one element: asking is worth it
}

func newQueues(maxPerNode, maxTotal int) *queues {
	return &queues{
		maxPerNode: maxPerNode, maxTotal: maxTotal,
		byNode: map[string]*queue{}, dirty: map[*queue]struct{}{},
	}
}

// enter lets a request wait, or returns nil when too many do already. What has
// changed since the question was asked has been looked at when enter returns, or
// will be.
func (qs *queues) enter(node string, q *question) *turn {
	t := &turn{key: q.key, wake: make(chan struct{}, 1)}
	if t.key == nil {
		t.key = t
	}
	if !qs.add(t, node, q.probe) {
		return nil
	}
	if qs.changes.Load() != q.asked && (q.probe == nil || q.probe()) {
		t.rouse()
	}
	return t
}

func (qs *queues) add(t *turn, node string, probe func() bool) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byNode[node]
	if int(qs.waiting.Load()) >= qs.maxTotal || q != nil && q.waiting >= qs.maxPerNode {
		return false
	}
	if q == nil {
		q = &queue{node: node, asked: map[any]*asked{}}
		qs.byNode[node] = q
	}
	a := q.asked[t.key]
	if a == nil {
		a = &asked{probe: probe, turns: map[*turn]struct{}{}}
		q.asked[t.key] = a
	}
	a.turns[t] = struct{}{}
	t.queue = q
	q.waiting++
	qs.waiting.Add(1)
	return true
}

func (qs *queues) leave(t *turn) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, a := t.queue, t.queue.asked[t.key]
	if delete(a.turns, t); len(a.turns) == 0 {
		delete(q.asked, t.key)
	}
	if q.waiting--; q.waiting == 0 {
		delete(qs.byNode, q.node)
		delete(qs.dirty, q)
	}
	qs.waiting.Add(-1)
}

// rouse makes the request ask again, once for any number of reasons.
func (t *turn) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// changed is told of each change. It returns at once: changes that come while
// questions are looked at are dealt with together.
func (qs *queues) changed(node string) {
	qs.changes.Add(1)
	if qs.waiting.Load() == 0 {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if node == "" {
		for _, q := range qs.byNode {
			qs.dirty[q] = struct{}{}
		}
	} else if q := qs.byNode[node]; q != nil {
		qs.dirty[q] = struct{}{}
	}
	if len(qs.dirty) > 0 && !qs.checking {
		qs.checking = true
		go qs.check()
	}
}

// check looks at the questions of nodes that changes concern, until there are
// none.
func (qs *queues) check() {
	for batch := qs.batch(); batch != nil; batch = qs.batch() {
		for _, a := range batch {
			if a.probe == nil || a.probe() {
				qs.rouse(a)
			}
		}
	}
}

// batch takes the questions to look at next; nil when there are none.
func (qs *queues) batch() []*asked {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.dirty) == 0 {
		qs.checking = false
		return nil
	}
	batch := []*asked{}
	for q := range qs.dirty {
		for _, a := range q.asked {
			batch = append(batch, a)
		}
	}
	clear(qs.dirty)
	return batch
}

func (qs *queues) rouse(a *asked) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for t := range a.turns {
		t.rouse()
	}
}
