package ec2instances

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// batcher coalesces and batches the questions of a region.
type batcher struct {
	options  *Options
	requests *requests
	// most is how many questions may wait.
	most  int
	slots chan struct{} // taken by each batch in flight
	full  chan struct{} // signals that a full batch waits

	mu sync.Mutex
	// open are the questions that wait or are in flight, by id.
	open    map[string]*question
	waiting []*question
	// alone are the questions that the answer to a batch did not answer. Each gets a
	// request of its own.
	alone    []*question
	inFlight int
	// working is whether a goroutine starts batches. AloneLast is whether its last request
	// was about a single question while others waited.
	working, aloneLast bool
}

// question is about one instance. Several callers may wait for its answer.
type question struct {
	id   string
	done chan struct{}
	// tries and deadline are the largest of all callers; fixed when the question is in
	// flight.
	tries    int
	deadline time.Time
	inFlight bool
	// answer and err are set when done is closed.
	answer Answer
	err    error
}

func newBatcher(o *Options, region string) *batcher {
	return &batcher{
		options: o, requests: newRequests(o, region),
		most:  o.BatchSize * max(1, int(o.PerSecond*queueSeconds)),
		slots: make(chan struct{}, maxInFlight), full: make(chan struct{}, 1), open: map[string]*question{},
	}
}

func (b *batcher) ask(ctx context.Context, id string, tries int) (Answer, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(questionLife)
	}
	for {
		q, patient := b.join(id, tries, deadline)
		if q == nil {
			return Answer{}, &Throttled{Detail: fmt.Sprintf("already %d instances wait for a look-up", b.most)}
		}
		select {
		case <-q.done:
			// A question that failed with less time or fewer tries is asked again.
			if q.err == nil || patient || ctx.Err() != nil {
				return q.answer, q.err
			}
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("wait for the answer of EC2 about instance %s: %w", id, ctx.Err())
		}
	}
}

// join returns the question about an instance, nil if too many wait, and whether it is
// as patient as the caller.
func (b *batcher) join(id string, tries int, deadline time.Time) (q *question, patient bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q = b.open[id]; q != nil {
		if q.inFlight {
			return q, q.tries >= tries && !q.deadline.Before(deadline)
		}
		q.tries = max(q.tries, tries)
		if deadline.After(q.deadline) {
			q.deadline = deadline
		}
		return q, true
	}
	if len(b.waiting)+len(b.alone) >= b.most {
		return nil, false
	}
	q = &question{id: id, tries: tries, deadline: deadline, done: make(chan struct{})}
	b.open[id] = q
	b.waiting = append(b.waiting, q)
	b.start()
	if len(b.waiting) == b.options.BatchSize {
		select {
		case b.full <- struct{}{}:
		default: // already signaled
		}
	}
	return q, true
}

// start starts the goroutine that starts batches, unless it runs.
func (b *batcher) start() {
	if !b.working {
		b.working = true
		go b.work()
	}
}

// work starts batches until no question waits.
func (b *batcher) work() {
	for more := true; more; {
		b.linger()
		b.slots <- struct{}{}
		var next *batch
		next, more = b.nextBatch()
		go b.answer(next)
	}
}

// linger waits for more questions, unless nothing is in flight or a full batch waits.
func (b *batcher) linger() {
	select {
	case <-b.full:
	default:
	}
	b.mu.Lock()
	ready := b.inFlight == 0 || len(b.waiting) >= b.options.BatchSize || len(b.alone) > 0
	b.mu.Unlock()
	if ready {
		return
	}
	timer := time.NewTimer(b.options.BatchWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.full:
	}
}

// batch are the questions of one request.
type batch struct {
	questions []*question
	tries     int
	deadline  time.Time
}

// nextBatch returns the questions that have waited longest, and whether more wait. If
// none
// wait, the next question starts the work again. Single questions get at most every other
// request, so that many of them do not delay the rest.
func (b *batcher) nextBatch() (next *batch, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next = &batch{}
	if len(b.alone) > 0 && (len(b.waiting) == 0 || !b.aloneLast) {
		next.questions, b.alone = b.alone[:1:1], b.alone[1:]
		b.aloneLast = true
	} else {
		n := min(len(b.waiting), b.options.BatchSize)
		next.questions, b.waiting = b.waiting[:n:n], b.waiting[n:]
		b.aloneLast = false
	}
	for _, q := range next.questions {
		q.inFlight = true
		next.tries = max(next.tries, q.tries)
		if q.deadline.After(next.deadline) {
			next.deadline = q.deadline
		}
	}
	b.inFlight++
	b.working = len(b.waiting)+len(b.alone) > 0
	return next, b.working
}

// answer sends the request of a batch. No caller's context ends it, because other callers
// may wait for the answer.
func (b *batcher) answer(next *batch) {
	ctx, cancel := context.WithDeadline(context.Background(), next.deadline)
	defer cancel()
	ids := make([]string, len(next.questions))
	for n, q := range next.questions {
		ids[n] = q.id
	}
	asked := b.options.Now()
	found, err := b.requests.describe(ctx, ids, next.tries)
	var answered, open []*question
	for _, q := range next.questions {
		one, named := found[q.id]
		if err == nil && !named && len(ids) > 1 {
			open = append(open, q)
			continue
		}
		if q.err = err; err == nil {
			q.answer = one
			q.answer.Asked = asked
		}
		answered = append(answered, q)
	}
	b.finish(answered, open)
}

// finish ends a batch. Each unanswered question is asked again with its own request.
func (b *batcher) finish(answered, open []*question) {
	b.mu.Lock()
	b.inFlight--
	for _, q := range answered {
		delete(b.open, q.id)
	}
	for _, q := range open {
		q.inFlight = false
	}
	b.alone = append(b.alone, open...)
	if len(b.alone) > 0 {
		b.start()
	}
	b.mu.Unlock()
	<-b.slots
	for _, q := range answered {
		close(q.done)
	}
}
