package bootstrap

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits are rate limits for requests. Zero means no limit.
type Limits struct {
	// PerSecond and Burst are the rate limit of all sources together.
	PerSecond float64
	Burst     int
	// PerSourcePerSecond and PerSourceBurst are the rate limit of one source: an IPv4
	// address, or the first 64 bits of an IPv6 address.
	PerSourcePerSecond float64
	PerSourceBurst     int
}

// maxSources is how many sources have limits of their own at the same time. All others share
// one limit.
const maxSources = 8192

// sweepInterval is the minimum time between two searches for idle sources.
const sweepInterval = time.Second

type limits struct {
	opts  Limits
	total *rate.Limiter

	mu      sync.Mutex
	sources map[netip.Prefix]*rate.Limiter
	shared  *rate.Limiter
	swept   time.Time
}

func newLimits(opts Limits) *limits {
	return &limits{
		opts: opts, total: limiter(opts.PerSecond, opts.Burst),
		sources: map[netip.Prefix]*rate.Limiter{}, shared: limiter(opts.PerSourcePerSecond, opts.PerSourceBurst),
	}
}

func limiter(perSecond float64, burst int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), burst)
}

// reserveSource reserves one request in the limit of its source, or returns how long the
// source should wait.
func (l *limits) reserveSource(source netip.Addr, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return reserve(l.source(prefix(source), now), now)
}

// reserveTotal reserves one request in the limit of all sources, or returns how long to wait.
func (l *limits) reserveTotal(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return reserve(l.total, now)
}

// reserve reserves one request of a limiter, or returns how long to wait.
func reserve(of *rate.Limiter, now time.Time) time.Duration {
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
				delete(l.sources, source) // idle
			}
		}
	}
	if len(l.sources) >= maxSources {
		return l.shared
	}
	added := limiter(l.opts.PerSourcePerSecond, l.opts.PerSourceBurst)
	l.sources[source] = added
	return added
}

// prefix returns the prefix of one source: the owner of an IPv6 address has 64 bits of them.
func prefix(source netip.Addr) netip.Prefix {
	source = source.Unmap().WithZone("")
	bits := source.BitLen()
	if source.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(source, bits).Masked()
}
