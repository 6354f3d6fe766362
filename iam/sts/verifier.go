package sts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/iam"
)

// Verifier finds out whose tokens are, as an [iam.Verifier].
type Verifier struct {
	options Options
	turns   *turns
	known   *known
}

var _ iam.Acquainted = (*Verifier)(nil)

// New returns a verifier. The error is about the options.
func New(options Options) (*Verifier, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	return &Verifier{
		options: options,
		turns:   newTurns(options),
		known:   newKnown(options.CacheTTL, options.CacheSize),
	}, nil
}

// Verify returns the caller who made a token. Errors are as [iam.Verifier] has them;
// one that is worth another try soon is an [*iam.Throttled].
func (v *Verifier) Verify(ctx context.Context, token string) (*iam.Caller, error) {
	now := v.options.Now()
	if len(token) > iam.MaxToken { // that much is not even hashed
		_, err := iam.ParseToken(token, now, v.options.Hosts)
		return nil, err
	}
	key := key(sha256.Sum256([]byte(token)))
	if answer, ok := v.known.answer(key, now); ok {
		v.options.Observe.TokenCache(true)
		return answer.result()
	}
	request, err := iam.ParseToken(token, now, v.options.Hosts)
	if err != nil {
		return nil, err
	}
	v.options.Observe.TokenCache(false)
	return v.wait(ctx, v.known.join(key, now, func(ctx context.Context, q *question) answer {
		return v.ask(ctx, q, request)
	}))
}

// Recognised implements [iam.Acquainted].
func (v *Verifier) Recognised(accessKeyID string) { v.turns.recognise(accessKeyID) }

// wait returns the answer to a question, or an error when the caller gives up. The
// others who wait for it go on.
func (v *Verifier) wait(ctx context.Context, q *question) (*iam.Caller, error) {
	select {
	case <-q.answered:
		return q.answer.result()
	case <-ctx.Done():
	}
	v.known.leave(q)
	if !q.sent.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &iam.Throttled{Service: service, Detail: "no turn within the limits on requests of this server"}
	}
	return nil, fmt.Errorf("asking STS whose a token is: %w", context.Cause(ctx))
}
