package instances

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/node-authorizer/node-authorizer/iam"
)

const (
	// underWay is how many requests about instances there may be at once.
	underWay = 4
	// requestLife ends a request, with all its tries and pages. kube-apiserver waits
	// 10 seconds for what it asks a webhook.
	requestLife = 8 * time.Second
	// waitingFor is how many seconds' worth of instances may wait for their turn.
	waitingFor = 2
)

// gathering puts questions about instances together.
type gathering struct {
	size int
	wait time.Duration
	// most is how many questions may wait.
	most     int
	now      func() time.Time
	describe func(ctx context.Context, ids []string) (map[string]record, error)
	remember func(id string, found record, asked time.Time)
	slots    chan struct{} // taken by each request
	full     chan struct{} // tells that a whole batch waits

	mu       sync.Mutex
	open     map[string]*question // those that wait and those under way, by id
	waiting  []*question
	underWay int
	working  bool
}

// question is about one instance, whoever asks it.
type question struct {
	id   string
	done chan struct{}
	// found and err are set when done is closed.
	found record
	err   error
}

func newGathering(
	o Options, describe func(context.Context, []string) (map[string]record, error), remember func(string, record, time.Time),
) *gathering {
	return &gathering{
		size: o.BatchSize, wait: o.BatchWait, most: o.BatchSize * max(1, int(o.PerSecond*waitingFor)), now: o.Now,
		describe: describe, remember: remember,
		slots: make(chan struct{}, underWay), full: make(chan struct{}, 1), open: map[string]*question{},
	}
}

// ask returns what EC2 says of an instance.
func (g *gathering) ask(ctx context.Context, id string) (record, error) {
	q := g.join(id)
	if q == nil {
		return record{}, &iam.Throttled{Service: serviceEC2, Detail: fmt.Sprintf("questions about %d instances wait for their turn", g.most)}
	}
	select {
	case <-q.done:
		return q.found, q.err
	case <-ctx.Done():
		return record{}, fmt.Errorf("waiting for what EC2 says of instance %s: %w", id, ctx.Err())
	}
}

// join returns the question about an instance, nil if too many wait.
func (g *gathering) join(id string) *question {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.open[id]; q != nil {
		return q
	}
	if len(g.waiting) >= g.most {
		return nil
	}
	q := &question{id: id, done: make(chan struct{})}
	g.open[id] = q
	g.waiting = append(g.waiting, q)
	switch {
	case !g.working:
		g.working = true
		go g.work()
	case len(g.waiting) == g.size:
		select {
		case g.full <- struct{}{}:
		default: // told already
		}
	}
	return q
}

// work starts one request after the other until no question waits.
func (g *gathering) work() {
	for more := true; more; {
		g.linger()
		g.slots <- struct{}{}
		var batch []*question
		batch, more = g.take()
		go g.answer(batch)
	}
}

// linger lets others come, unless nothing is being asked, or enough have come.
func (g *gathering) linger() {
	select {
	case <-g.full:
	default:
	}
	g.mu.Lock()
	ready := g.underWay == 0 || len(g.waiting) >= g.size
	g.mu.Unlock()
	if ready {
		return
	}
	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.full:
	}
}

// take returns the questions that have waited longest, and whether more wait; if not,
// the next one starts to work anew.
func (g *gathering) take() (batch []*question, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.size)
	batch, g.waiting = g.waiting[:n:n], g.waiting[n:]
	g.underWay++
	g.working = len(g.waiting) > 0
	return batch, g.working
}

// answer makes a request. Nobody's context ends it: who gives up is not the only one
// who waits.
func (g *gathering) answer(batch []*question) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLife)
	defer cancel()
	ids := make([]string, len(batch))
	for n, q := range batch {
		ids[n] = q.id
	}
	asked := g.now()
	found, err := g.describe(ctx, ids)
	for _, q := range batch {
		if q.err = err; err == nil {
			q.found = found[q.id]
			g.remember(q.id, q.found, asked)
		}
	}
	g.finish(batch)
}

func (g *gathering) finish(batch []*question) {
	g.mu.Lock()
	g.underWay--
	for _, q := range batch {
		delete(g.open, q.id)
	}
	g.mu.Unlock()
	<-g.slots
	for _, q := range batch {
		close(q.done)
	}
}
