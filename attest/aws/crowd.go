package aws

import (
	"context"
	"sync"
	"time"
)

// EC2 throttles an account after some twenty requests a second. Machines come in
// crowds, when a cluster grows or after a power failure, and each of them would need
// a request. So no more than two are under way for a region; who comes meanwhile
// is gathered, and the next request is about all of them. A machine that comes alone
// does not wait.
const (
	crowdsUnderWay = 2
	// crowdSize is how many values a filter of EC2's may have.
	crowdSize = 200
	// crowdLife ends a request about machines whose own requests have no deadline.
	crowdLife = time.Minute
)

// crowds gathers questions about instances.
type crowds struct {
	// one and many ask EC2 about one instance, and about several.
	one  func(ctx context.Context, region, id string) (*instance, error)
	many func(ctx context.Context, region string, ids []string) (map[string]*instance, error)

	mu       sync.Mutex
	gathered map[string][]*crowd // by region; the last one still grows
	underWay map[string]int
}

// crowd is one request to EC2.
type crowd struct {
	ids      map[string]bool
	deadline time.Time // the latest of those who wait
	done     chan struct{}
	// found and err are set when done is closed.
	found map[string]*instance
	err   error
}

// ask returns what EC2 says of an instance. It can be nil without an error if EC2
// was asked about several.
func (c *crowds) ask(ctx context.Context, region, id string) (*instance, error) {
	mine := c.join(ctx, region, id)
	select {
	case <-mine.done:
		return mine.found[id], mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *crowds) join(ctx context.Context, region, id string) *crowd {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(crowdLife)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.gathered[region]
	if len(waiting) == 0 || len(waiting[len(waiting)-1].ids) == crowdSize {
		waiting = append(waiting, &crowd{ids: map[string]bool{}, done: make(chan struct{})})
		c.gathered[region] = waiting
	}
	mine := waiting[len(waiting)-1]
	mine.ids[id] = true
	if deadline.After(mine.deadline) {
		mine.deadline = deadline
	}
	if c.underWay[region] < crowdsUnderWay {
		c.underWay[region]++
		go c.work(region)
	}
	return mine
}

// work asks for one crowd after the other until none is left.
func (c *crowds) work(region string) {
	for next := c.next(region); next != nil; next = c.next(region) {
		ctx, cancel := context.WithDeadline(context.Background(), next.deadline)
		next.found, next.err = c.askFor(ctx, region, next)
		cancel()
		close(next.done)
	}
}

// next takes the crowd that has waited longest; nobody joins it any more.
func (c *crowds) next(region string) *crowd {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.gathered[region]
	if len(waiting) == 0 {
		c.underWay[region]--
		return nil
	}
	c.gathered[region] = waiting[1:]
	return waiting[0]
}

func (c *crowds) askFor(ctx context.Context, region string, of *crowd) (map[string]*instance, error) {
	ids := make([]string, 0, len(of.ids))
	for id := range of.ids {
		ids = append(ids, id)
	}
	if len(ids) > 1 {
		return c.many(ctx, region, ids)
	}
	found, err := c.one(ctx, region, ids[0])
	return map[string]*instance{ids[0]: found}, err
}

// newCrowds gathers questions to one EC2.
func newCrowds(api EC2API) *crowds {
	return &crowds{
		one: func(ctx context.Context, region, id string) (*instance, error) {
			return describeOne(ctx, api, region, id)
		},
		many: func(ctx context.Context, region string, ids []string) (map[string]*instance, error) {
			return describeMany(ctx, api, region, ids)
		},
		gathered: map[string][]*crowd{}, underWay: map[string]int{},
	}
}
