package sts

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// key is the hash of a token. The token itself is not kept.
type key [sha256.Size]byte

// answer is the result of verifying a token.
type answer struct {
	caller *iam.Caller
	err    error
	// at is the time of STS's answer.
	at time.Time
}

// result returns a copy of the answer, which the receiver may change.
func (a answer) result() (*iam.Caller, error) {
	if a.err != nil {
		return nil, a.err
	}
	caller := *a.caller
	return &caller, nil
}

// refusedTTL is how long a refusal of STS is cached. It is short because new credentials
// take some seconds to reach all of AWS
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency).
const refusedTTL = 5 * time.Second

// answerCache has the cached answers, and the calls in flight.
type answerCache struct {
	ttl time.Duration
	now func() time.Time
	// callers and refusals have answers by key. Refusals are kept apart, so that they evict no callers.
	callers, refusals *cache.LRUExpireCache

	mu    sync.Mutex
	calls map[key]*call
}

// newAnswerCache returns a cache that keeps no answer longer than ttl.
func newAnswerCache(ttl time.Duration, size int, now func() time.Time) *answerCache {
	return &answerCache{
		ttl: ttl, now: now, calls: map[key]*call{},
		callers: cache.NewLRUExpireCacheWithClock(size, clock(now)), refusals: cache.NewLRUExpireCacheWithClock(size/10+1, clock(now)),
	}
}

// call is a call of STS about one token. Several callers may wait for its answer.
type call struct {
	key    key
	cancel context.CancelFunc
	// sent is whether a request was sent to STS.
	sent atomic.Bool
	// answer is set when answered is closed.
	answered chan struct{}
	answer   answer
	// waiting is the number of callers that wait.
	waiting int
}

// answer returns the cached answer about a token.
func (c *answerCache) answer(of key) (answer, bool) {
	found, ok := c.callers.Get(of)
	if !ok {
		found, ok = c.refusals.Get(of)
	}
	if !ok {
		return answer{}, false
	}
	return found.(answer), true
}

// join returns the call about a token, and starts it if there is none in flight. The
// call serves all callers that join it: it ends when all of them have left.
func (c *answerCache) join(about key, ask func(context.Context, *call) answer) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked, ok := c.calls[about]; ok {
		asked.waiting++
		return asked
	}
	asked := &call{key: about, answered: make(chan struct{}), waiting: 1}
	if answer, ok := c.answer(about); ok { // another call has just ended
		asked.answer = answer
		close(asked.answered)
		return asked
	}
	var ctx context.Context
	ctx, asked.cancel = context.WithCancel(context.Background())
	c.calls[about] = asked
	go func() {
		defer asked.cancel()
		c.conclude(asked, ask(ctx, asked))
	}()
	return asked
}

// conclude passes an answer to all callers that wait for it, and caches it if it decides
// about the token.
func (c *answerCache) conclude(asked *call, answer answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[asked.key] == asked {
		delete(c.calls, asked.key)
	}
	refusal := new(iam.Refusal)
	switch {
	case answer.err == nil:
		until := answer.at.Add(c.ttl)
		if answer.caller.NotAfter.Before(until) {
			until = answer.caller.NotAfter
		}
		c.keep(c.callers, asked.key, answer, until)
	case errors.As(answer.err, &refusal):
		c.keep(c.refusals, asked.key, answer, answer.at.Add(min(refusedTTL, c.ttl)))
	}
	asked.answer = answer
	close(asked.answered)
}

// leave ends the call if no other caller waits for its answer. Later callers start a new
// call.
func (c *answerCache) leave(asked *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked.waiting--
	if asked.waiting == 0 && c.calls[asked.key] == asked {
		delete(c.calls, asked.key)
		asked.cancel()
	}
}

// keep caches an answer until just before its expiry: the cache still has an entry at the end of its time.
func (c *answerCache) keep(in *cache.LRUExpireCache, about key, answer answer, until time.Time) {
	if left := until.Sub(c.now()); left > 0 {
		in.Add(about, answer, left-time.Nanosecond)
	}
}
