package sts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// Verifier verifies tokens by calling STS. It implements [iam.Verifier].
type Verifier struct {
	options Options
	limiter *limiter
	cache   *answerCache
}

var _ iam.CallerTracker = (*Verifier)(nil)

// New returns a verifier. The error is about the options.
func New(options Options) (*Verifier, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	return &Verifier{
		options: options,
		limiter: newLimiter(options),
		cache:   newAnswerCache(options.CacheTTL, options.CacheSize, options.Now),
	}, nil
}

// Verify returns the caller who signed a token. [iam.Verifier] describes the errors. After
// an [*iam.Throttled], try again soon.
func (v *Verifier) Verify(ctx context.Context, token string) (*iam.Caller, error) {
	now := v.options.Now()
	if len(token) > iam.MaxToken { // do not hash unbounded input
		_, err := iam.ParseToken(token, now, v.options.Hosts)
		return nil, err
	}
	key := key(sha256.Sum256([]byte(token)))
	if answer, ok := v.cache.answer(key); ok {
		v.options.Observe.TokenCache(true)
		return answer.result()
	}
	request, err := iam.ParseToken(token, now, v.options.Hosts)
	if err != nil {
		return nil, err
	}
	v.options.Observe.TokenCache(false)
	return v.wait(ctx, v.cache.join(key, func(ctx context.Context, c *call) answer {
		return v.ask(ctx, c, request)
	}))
}

// Authenticated implements [iam.CallerTracker].
func (v *Verifier) Authenticated(accessKeyID string) { v.limiter.authenticated(accessKeyID) }

// wait returns the answer of a call, or an error when the context ends. Other callers
// keep waiting for the answer.
func (v *Verifier) wait(ctx context.Context, c *call) (*iam.Caller, error) {
	select {
	case <-c.answered:
		return c.answer.result()
	case <-ctx.Done():
	}
	v.cache.leave(c)
	if !c.sent.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &iam.Throttled{Service: service, Detail: "the limits of this server left no slot in time"}
	}
	return nil, fmt.Errorf("verify a token with STS: %w", context.Cause(ctx))
}
