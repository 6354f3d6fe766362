package freshness

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// question is a question for whose answer requests wait.
type question struct {
	// key is equal for questions that have the same answer; nil if the question is unique.
	key any
	// probe is a cheap check whether the answer has changed; nil if only the evaluator can
	// say that. It may be called after its request is gone.
	probe func() bool
	// asked is the number of changes when the question was last evaluated.
	asked uint64
}

// queues hold the waiting requests, by node.
type queues struct {
	maxPerNode, maxTotal int
	// changes counts changes. If it has not moved since a question was evaluated, the
	// question missed no change.
	changes atomic.Uint64
	// waiting counts requests, so that changes cost nothing while none waits.
	waiting atomic.Int64

	mu     sync.Mutex
	byNode map[string]*queue
	// taken are the places of all nodes.
	taken *places
	// dirty holds the nodes that have changes to handle. While it is not empty, one
	// goroutine probes the questions of these nodes.
	dirty    map[*queue]struct{}
	checking bool
}

// queue holds the waiting requests of one node.
type queue struct {
	node      string
	taken     *places
	questions map[any]*pendingQuestion
}

// pendingQuestion is a question and the requests that wait for its answer.
type pendingQuestion struct {
	probe   func() bool
	waiters map[*waiter]struct{}
}

// waiter is one request that waits.
type waiter struct {
	queue *queue
	// account is the service account that asks; empty for the node itself.
	account string
	key     any
	wake    chan struct{} // has one element if the evaluator should be asked again
	gaveWay chan struct{} // is closed when another request takes the place
	// leave frees the places. It is nil when they are free.
	leave func()
}

func newQueues(maxPerNode, maxTotal int) *queues {
	return &queues{
		maxPerNode: maxPerNode, maxTotal: maxTotal,
		byNode: map[string]*queue{}, dirty: map[*queue]struct{}{}, taken: newPlaces(),
	}
}

// enter adds a waiting request of a node, or of a service account on the node. If too many wait already,
// the oldest gives way. Changes since the question was evaluated have been probed when enter returns, or
// will be.
func (qs *queues) enter(node, account string, q *question) *waiter {
	t := &waiter{key: q.key, account: account, wake: make(chan struct{}, 1), gaveWay: make(chan struct{})}
	if t.key == nil {
		t.key = t
	}
	qs.add(t, node, q.probe)
	if qs.changes.Load() != q.asked && (q.probe == nil || q.probe()) {
		t.notify()
	}
	return t
}

func (qs *queues) add(t *waiter, node string, probe func() bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byNode[node]; q != nil {
		qs.makePlace(q.taken.givesWay(t.account, qs.maxPerNode))
	}
	qs.makePlace(qs.taken.givesWay(t.account, qs.maxTotal))
	q := qs.byNode[node]
	if q == nil {
		q = &queue{node: node, questions: map[any]*pendingQuestion{}, taken: newPlaces()}
		qs.byNode[node] = q
	}
	a := q.questions[t.key]
	if a == nil {
		a = &pendingQuestion{probe: probe, waiters: map[*waiter]struct{}{}}
		q.questions[t.key] = a
	}
	a.waiters[t] = struct{}{}
	t.queue = q
	ofNode, ofAll := q.taken.take(t), qs.taken.take(t)
	t.leave = func() { ofNode(); ofAll() }
	qs.waiting.Add(1)
}

// makePlace ends the wait of a request, if it is not nil.
func (qs *queues) makePlace(oldest *waiter) {
	if oldest != nil {
		qs.remove(oldest)
		close(oldest.gaveWay)
	}
}

func (qs *queues) leave(t *waiter) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if t.leave != nil {
		qs.remove(t)
	}
}

func (qs *queues) remove(t *waiter) {
	q, a := t.queue, t.queue.questions[t.key]
	if delete(a.waiters, t); len(a.waiters) == 0 {
		delete(q.questions, t.key)
	}
	t.leave()
	t.leave = nil
	if q.taken.all.Len() == 0 {
		delete(qs.byNode, q.node)
		delete(qs.dirty, q)
	}
	qs.waiting.Add(-1)
}

// notify makes the request ask the evaluator again. Several calls may count as one.
func (t *waiter) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// changed handles one change. It returns at once: changes that arrive during a probe are
// handled in one batch.
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

// check probes the questions of dirty nodes until there are none.
func (qs *queues) check() {
	for batch := qs.batch(); batch != nil; batch = qs.batch() {
		for _, a := range batch {
			if a.probe == nil || a.probe() {
				qs.notifyAll(a)
			}
		}
	}
}

// batch returns the next questions to probe; nil if there are none.
func (qs *queues) batch() []*pendingQuestion {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.dirty) == 0 {
		qs.checking = false
		return nil
	}
	batch := []*pendingQuestion{}
	for q := range qs.dirty {
		for _, a := range q.questions {
			batch = append(batch, a)
		}
	}
	clear(qs.dirty)
	return batch
}

func (qs *queues) notifyAll(a *pendingQuestion) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for t := range a.waiters {
		t.notify()
	}
}

// places are the requests that wait, of one node or of all, in the order in which they came. A user who may
// create SubjectAccessReviews can ask for any service account and any node. So service accounts together take
// at most half of the places, and one of them a quarter: the others are for the nodes themselves. When a bound
// is reached, the oldest request within it gives way to the new one. Lags are mostly much shorter than the time
// limit of a wait, so a request that gives way to many others has waited long enough for nearly all of them.
type places struct {
	all, accounts list.List
	byAccount     map[string]*list.List
}

func newPlaces() *places { return &places{byAccount: map[string]*list.List{}} }

// bound is a limit for some of the requests that wait.
type bound struct {
	waiting *list.List
	most    int
}

// bounds are the limits for requests of an account, or of a node itself if it is empty: the narrowest first.
func (p *places) bounds(account string, most int) []bound {
	all := bound{&p.all, most}
	if account == "" {
		return []bound{all}
	}
	own := p.byAccount[account]
	if own == nil {
		own = list.New()
	}
	return []bound{{own, max(1, most/4)}, {&p.accounts, max(1, most/2)}, all}
}

// givesWay returns the request that has to go before one more may wait; nil if there is a place.
func (p *places) givesWay(account string, most int) *waiter {
	for _, b := range p.bounds(account, most) {
		if b.waiting.Len() >= b.most {
			return b.waiting.Front().Value.(*waiter)
		}
	}
	return nil
}

// take adds a request. The returned function removes it.
func (p *places) take(t *waiter) (leave func()) {
	all := p.all.PushBack(t)
	if t.account == "" {
		return func() { p.all.Remove(all) }
	}
	own := p.byAccount[t.account]
	if own == nil {
		own = list.New()
		p.byAccount[t.account] = own
	}
	account, mine := p.accounts.PushBack(t), own.PushBack(t)
	return func() {
		p.all.Remove(all)
		p.accounts.Remove(account)
		if own.Remove(mine); own.Len() == 0 {
			delete(p.byAccount, t.account)
		}
	}
}
