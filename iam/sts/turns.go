package sts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/node-authorizer/node-authorizer/iam"
)

// Whoever can reach the API server can have STS asked, with credentials of any account
// or with none: only STS tells a forged token. So the turns are shared out. Nobody is
// turned away for what a token says of itself; but who got a user before goes first.
const (
	// heldBack is the part of all turns that strangers do not get: a quarter.
	heldBack = 4
	// recognisedFor is for how long somebody is no stranger, and notedOften how often in
	// that time it is noted. Nodes come every few minutes, and their credentials are good
	// for some hours.
	recognisedFor = time.Hour
	notedOften    = 60
	// keyPerSecond and keyBurst are how many turns one access key has before others:
	// its id is no secret, so that tokens can be forged with it. A node makes a token in
	// a quarter of an hour.
	keyPerSecond = 1
	keyBurst     = 10
)

// turns decide who may ask STS, and when.
type turns struct {
	options    Options
	recognised *cache.LRUExpireCache // of acquaintance, by the ids of access keys

	slots          chan struct{} // one for each request that is under way
	strangersSlots chan struct{} // likewise, of strangers

	mu    sync.Mutex
	limit *rate.Limiter
	hosts map[string]*host
}

// host is one that is asked.
type host struct {
	// first is taken by a request while it is open whether the host answers.
	first chan struct{}
	// answered is when it last did.
	answered time.Time
}

func newTurns(o Options) *turns {
	return &turns{
		options:    o,
		recognised: cache.NewLRUExpireCacheWithClock(max(1, o.CacheSize), clock(o.Now)),
		slots:      make(chan struct{}, o.MaxInFlight), strangersSlots: make(chan struct{}, o.MaxInFlight-o.MaxInFlight/heldBack),
		limit: rate.NewLimiter(rate.Limit(o.PerSecond), o.Burst), hosts: map[string]*host{},
	}
}

// clock is a function as the cache wants it.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

// acquaintance is an access key whose owner got a user.
type acquaintance struct {
	own   *rate.Limiter
	noted time.Time
}

// recognise notes that the owner of an access key got a user, once in a while: it is
// told so with every token.
func (t *turns) recognise(accessKeyID string) {
	now := t.options.Now()
	known, ok := t.recognised.Get(accessKeyID)
	if !ok {
		known = acquaintance{own: rate.NewLimiter(keyPerSecond, keyBurst)}
	}
	one := known.(acquaintance)
	if now.Sub(one.noted) >= recognisedFor/notedOften {
		one.noted = now
		t.recognised.Add(accessKeyID, one, recognisedFor)
	}
}

// isStranger reports whether a request has no turn of the owner of its access key.
func (t *turns) isStranger(accessKeyID string) bool {
	known, ok := t.recognised.Get(accessKeyID)
	return !ok || !known.(acquaintance).own.AllowN(t.options.Now(), 1)
}

// take waits for a turn. What is too much within a second is turned away at once: its
// sender tries again, others do not wait behind it.
func (t *turns) take(ctx context.Context, request *iam.Request) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, t.options.Timeout)
	defer cancel()
	stranger := t.isStranger(request.AccessKeyID)
	release, err = t.takeFirst(ctx, request.Host)
	if release == nil && err == nil {
		release, err = t.takeSlot(ctx, stranger)
	}
	if err != nil {
		return nil, err
	}
	if !t.withinLimit(stranger) {
		release()
		return nil, &iam.Throttled{Service: service, Detail: fmt.Sprintf("no more than %g requests a second are sent", t.options.PerSecond)}
	}
	return release, nil
}

// takeFirst waits for the one turn that there is at a host that has not answered
// lately, so that hosts that cannot be reached take no turns of those that can. It
// returns nothing once the host answers.
func (t *turns) takeFirst(ctx context.Context, name string) (release func(), err error) {
	first, answers := t.host(name)
	if answers {
		return nil, nil
	}
	select {
	case first <- struct{}{}:
	case <-ctx.Done():
		return nil, &iam.Throttled{Service: service, Detail: name + " is asked a first question, and has not answered it in time"}
	}
	release = func() { <-first }
	if _, answers := t.host(name); answers { // it has, while we waited
		release()
		return nil, nil
	}
	return release, nil
}

// host returns the first turn at a host, and whether the host has answered as lately as
// it would have to.
func (t *turns) host(name string) (first chan struct{}, answers bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, known := t.hosts[name]
	if !known {
		h = &host{first: make(chan struct{}, 1)}
		t.hosts[name] = h
	}
	return h.first, t.options.Now().Sub(h.answered) <= t.options.Timeout
}

// answers notes that a host did.
func (t *turns) answers(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, known := t.hosts[name]; known {
		h.answered = t.options.Now()
	}
}

// takeSlot waits until fewer requests are under way than there may be.
func (t *turns) takeSlot(ctx context.Context, stranger bool) (release func(), err error) {
	var taken []chan struct{}
	release = func() {
		for _, slots := range taken {
			<-slots
		}
	}
	wanted := []chan struct{}{t.slots}
	if stranger {
		wanted = []chan struct{}{t.strangersSlots, t.slots}
	}
	for _, slots := range wanted {
		select {
		case slots <- struct{}{}:
			taken = append(taken, slots)
		case <-ctx.Done():
			release()
			return nil, &iam.Throttled{Service: service, Detail: fmt.Sprintf("none of %d requests that may be under way ended in time", t.options.MaxInFlight)}
		}
	}
	return release, nil
}

// withinLimit reports whether a request may be sent in this second. Strangers leave a
// part of what there is after a rest; while they take the rest, it fills up for nobody
// but those who are recognised.
func (t *turns) withinLimit(stranger bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.options.Now()
	if stranger && t.limit.TokensAt(now) < float64(1+t.options.Burst/heldBack) {
		return false
	}
	return t.limit.AllowN(now, 1)
}
