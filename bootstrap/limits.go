package bootstrap

import (
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits say how many requests are looked at. What is zero has no limit.
type Limits struct {
	// PerSecond is how many requests are looked at in the long run, Burst how many
	// at once, of all sources together.
	PerSecond float64
	Burst     int
	// PerSourcePerSecond and PerSourceBurst are those of one source: an IPv4
	// address, or the first 64 bits of an IPv6 address.
	PerSourcePerSecond float64
	PerSourceBurst     int
}

func (l Limits) check() error {
	for _, pair := range []struct {
		rate  float64
		burst int
	}{{l.PerSecond, l.Burst}, {l.PerSourcePerSecond, l.PerSourceBurst}} {
		if pair.rate < 0 || math.IsNaN(pair.rate) || pair.burst < 0 || pair.rate > 0 && pair.burst == 0 {
			return errors.New("a limit of requests is negative, or has a rate but no burst")
		}
	}
	return nil
}

// maxSources is how many sources have limits of their own at once. Those beyond
// share one.
const maxSources = 8192

// sweepInterval is how often sources are looked for that have not asked lately.
const sweepInterval = time.Second

type limits struct {
	opts  Limits
	total *rate.Limiter

	mu      sync.Mutex
	sources map[netip.Prefix]*rate.Limiter
	others  *rate.Limiter
	swept   time.Time
}

func newLimits(opts Limits) *limits {
	return &limits{
		opts: opts, total: limiter(opts.PerSecond, opts.Burst),
		sources: map[netip.Prefix]*rate.Limiter{}, others: limiter(opts.PerSourcePerSecond, opts.PerSourceBurst),
	}
}

func limiter(perSecond float64, burst int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), burst)
}

// ofSource takes one request of what its source has, or says for how long the
// source should wait.
func (l *limits) ofSource(source netip.Addr, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return spend(l.source(prefix(source), now), now)
}

// ofAll takes one request of what all sources have together, or says when there
// will be one.
func (l *limits) ofAll(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return spend(l.total, now)
}

// spend takes one request from a limiter, or says when there will be one.
func spend(of *rate.Limiter, now time.Time) time.Duration {
	reservation := of.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

func (l *limits) source(source netip.Prefix, now time.Time) *rate.Limiter {
	if known, ok := l.sources[source]; ok {
		return known
	}
	if len(l.sources) >= maxSources && now.Sub(l.swept) >= sweepInterval {
		l.swept = now
		for source, limiter := range l.sources {
			if limiter.TokensAt(now) >= float64(limiter.Burst()) {
				delete(l.sources, source) // as good as new
			}
		}
	}
	if len(l.sources) >= maxSources {
		return l.others
	}
	added := limiter(l.opts.PerSourcePerSecond, l.opts.PerSourceBurst)
	l.sources[source] = added
	return added
}

// prefix is what one source is: whoever has an IPv6 address has 64 bits of them.
func prefix(source netip.Addr) netip.Prefix {
	source = source.Unmap().WithZone("")
	bits := source.BitLen()
	if source.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(source, bits).Masked()
}
