package sts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// Anybody who can reach the API server can make this server send requests to STS, with
// credentials of any account or with none: only STS detects a forged token. So a part of
// all limits is reserved for known callers, whose tokens have been authenticated before.
// The content of a token alone never decides that its request is not sent.
const (
	// reservedFraction is the part of the limits that is reserved for known callers:
	// one in four.
	reservedFraction = 4
	// knownFor is how long a caller stays known after an authentication, and
	// refreshesPerTTL how often in that time the entry is renewed. Nodes authenticate
	// every few minutes, and their credentials are valid for some hours.
	knownFor        = time.Hour
	refreshesPerTTL = 60
	// keyPerSecond and keyBurst limit the priority of one access key. Its id is no
	// secret, so that anybody can forge tokens with it. A node makes one token in a
	// quarter of an hour.
	keyPerSecond = 1
	keyBurst     = 10
)

// limiter decides who may send a request to STS, and when.
type limiter struct {
	options Options
	known   *cache.LRUExpireCache // of knownCaller, by access key id

	slots        chan struct{} // one for each request in flight
	unknownSlots chan struct{} // likewise, for unknown callers

	mu    sync.Mutex
	limit *rate.Limiter
	hosts map[string]*host
}

// host is a host of STS.
type host struct {
	// probe is held by the only request to a host that has not answered recently.
	probe chan struct{}
	// answered is the time of its last answer.
	answered time.Time
}

func newLimiter(o Options) *limiter {
	return &limiter{
		options: o,
		known:   cache.NewLRUExpireCacheWithClock(max(1, o.CacheSize), clock(o.Now)),
		slots:   make(chan struct{}, o.MaxInFlight), unknownSlots: make(chan struct{}, o.MaxInFlight-o.MaxInFlight/reservedFraction),
		limit: rate.NewLimiter(rate.Limit(o.PerSecond), o.Burst), hosts: map[string]*host{},
	}
}

// clock adapts a function to cache.Clock.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

// knownCaller is an access key whose owner has been authenticated.
type knownCaller struct {
	priority  *rate.Limiter
	refreshed time.Time
}

// authenticated records that the owner of an access key has been authenticated. It is
// called for every token, and renews the entry only once in a while.
func (l *limiter) authenticated(accessKeyID string) {
	now := l.options.Now()
	entry, ok := l.known.Get(accessKeyID)
	if !ok {
		entry = knownCaller{priority: rate.NewLimiter(keyPerSecond, keyBurst)}
	}
	caller := entry.(knownCaller)
	if now.Sub(caller.refreshed) >= knownFor/refreshesPerTTL {
		caller.refreshed = now
		l.known.Add(accessKeyID, caller, knownFor)
	}
}

// isUnknown reports whether a request is limited as one of an unknown caller: its access
// key is not known, or has used up its priority.
func (l *limiter) isUnknown(accessKeyID string) bool {
	entry, ok := l.known.Get(accessKeyID)
	return !ok || !entry.(knownCaller).priority.AllowN(l.options.Now(), 1)
}

// acquire waits for a slot. A request beyond the rate limit fails at once: its sender
// tries again, and others do not wait behind it.
func (l *limiter) acquire(ctx context.Context, request *iam.Request) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	unknown := l.isUnknown(request.AccessKeyID)
	release, err = l.acquireProbe(ctx, request.Host)
	if release == nil && err == nil {
		release, err = l.acquireSlot(ctx, unknown)
	}
	if err != nil {
		return nil, err
	}
	if !l.withinRate(unknown) {
		release()
		return nil, &iam.Throttled{Service: service, Detail: fmt.Sprintf("no more than %g requests a second are sent", l.options.PerSecond)}
	}
	return release, nil
}

// acquireProbe waits for the only slot of a host that has not answered recently. This
// way, unreachable hosts use no slots of reachable ones. It returns nil if the host
// answers.
func (l *limiter) acquireProbe(ctx context.Context, name string) (release func(), err error) {
	probe, answers := l.host(name)
	if answers {
		return nil, nil
	}
	select {
	case probe <- struct{}{}:
	case <-ctx.Done():
		return nil, &iam.Throttled{Service: service, Detail: name + " has not answered its first request in time"}
	}
	release = func() { <-probe }
	if _, answers := l.host(name); answers { // it answered another request meanwhile
		release()
		return nil, nil
	}
	return release, nil
}

// host returns the probe slot of a host, and whether the host has answered within the
// timeout of a request.
func (l *limiter) host(name string) (probe chan struct{}, answers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.hosts[name]
	if !ok {
		h = &host{probe: make(chan struct{}, 1)}
		l.hosts[name] = h
	}
	return h.probe, l.options.Now().Sub(h.answered) <= l.options.Timeout
}

// hostAnswered records that a host answered.
func (l *limiter) hostAnswered(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.hosts[name]; ok {
		h.answered = l.options.Now()
	}
}

// acquireSlot waits until fewer requests are in flight than the limit.
func (l *limiter) acquireSlot(ctx context.Context, unknown bool) (release func(), err error) {
	var acquired []chan struct{}
	release = func() {
		for _, slots := range acquired {
			<-slots
		}
	}
	wanted := []chan struct{}{l.slots}
	if unknown {
		wanted = []chan struct{}{l.unknownSlots, l.slots}
	}
	for _, slots := range wanted {
		select {
		case slots <- struct{}{}:
			acquired = append(acquired, slots)
		case <-ctx.Done():
			release()
			return nil, &iam.Throttled{
				Service: service, Detail: fmt.Sprintf("all %d slots for requests stayed in use", l.options.MaxInFlight),
			}
		}
	}
	return release, nil
}

// withinRate reports whether the rate limit admits a request now. Unknown callers leave
// a part of the burst to known callers. While unknown callers use up the rest, that part
// still refills.
func (l *limiter) withinRate(unknown bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Now()
	if unknown && l.limit.TokensAt(now) < float64(1+l.options.Burst/reservedFraction) {
		return false
	}
	return l.limit.AllowN(now, 1)
}
