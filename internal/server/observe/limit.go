package observe

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// summaryAfter is the time from the first dropped line to the line with the number of
	// dropped lines.
	summaryAfter = 10 * time.Second
	// maxShares limits how many nodes have a share of their own at once.
	maxShares = 1024
)

// limit decides which lines are written, and counts the others.
type limit struct {
	opts    RefusalOptions
	summary func(n int)
	total   *rate.Limiter

	mu      sync.Mutex
	shares  map[string]*rate.Limiter
	leftOut int
	timer   *time.Timer // runs while leftOut is not 0
}

func newLimit(opts RefusalOptions, summary func(n int)) *limit {
	return &limit{
		opts: opts, summary: summary, total: rate.NewLimiter(rate.Limit(opts.PerSecond), opts.Burst),
		shares: map[string]*rate.Limiter{},
	}
}

// allows reports whether a line about a node may be written now.
func (l *limit) allows(node string) bool {
	now := time.Now()
	l.mu.Lock()
	allowed := l.share(node).AllowN(now, 1) && l.total.AllowN(now, 1)
	if !allowed {
		if l.leftOut++; l.leftOut == 1 {
			l.timer = time.AfterFunc(summaryAfter, l.flush)
		}
	}
	l.mu.Unlock()
	if !allowed {
		l.opts.NotLogged(1)
	}
	return allowed
}

// share returns the limit of one node, which is half of the total. If there are too many
// nodes, all shares are reset; the total limit holds in any case.
func (l *limit) share(node string) *rate.Limiter {
	share := l.shares[node]
	if share == nil {
		if len(l.shares) >= maxShares {
			clear(l.shares)
		}
		share = rate.NewLimiter(rate.Limit(l.opts.PerSecond/2), (l.opts.Burst+1)/2)
		l.shares[node] = share
	}
	return share
}

// flush writes the number of dropped lines.
func (l *limit) flush() {
	l.mu.Lock()
	n := l.leftOut
	if l.leftOut = 0; l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if n > 0 {
		l.summary(n)
	}
}
