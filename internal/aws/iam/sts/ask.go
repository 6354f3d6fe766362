package sts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/calleridentity"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// service is the name of STS in errors.
const service = "STS"

// ask sends a request to STS as soon as the limits admit it.
func (v *Verifier) ask(ctx context.Context, c *call, request *iam.Request) answer {
	release, err := v.limiter.acquire(ctx, request)
	if err != nil {
		v.observe(ctx, Limited, 0, 0)
		return answer{err: err}
	}
	defer release()
	c.sent.Store(true)
	began := v.options.Now()
	caller, status, err := v.send(ctx, request)
	ended := v.options.Now()
	v.observe(ctx, outcomeOf(err), status, ended.Sub(began))
	return answer{caller: caller, err: err, at: ended}
}

// observe reports the outcome of a request. The context of a call ends when nobody waits
// for its answer.
func (v *Verifier) observe(ctx context.Context, outcome Outcome, status int, took time.Duration) {
	if ctx.Err() != nil && (outcome == Failed || outcome == Limited) {
		outcome = Abandoned
	}
	v.options.Observe.STSRequest(outcome, status, took)
}

// send sends a request and reads the answer. A redirect is an answer: the transport does
// not follow it.
func (v *Verifier) send(ctx context.Context, request *iam.Request) (caller *iam.Caller, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.options.Timeout)
	defer cancel()
	status, body, err := v.exchange(ctx, request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: %w", v.options.Timeout, context.DeadlineExceeded)
		}
		return nil, status, fmt.Errorf("verify a token with STS at %s: %w", request.Host, err)
	}
	who, err := read(status, body)
	if decided(err) {
		return nil, status, err
	}
	if err != nil {
		return nil, status, fmt.Errorf("verify a token with STS at %s: %w", request.Host, err)
	}
	return &iam.Caller{
		ARN: who.ARN, Account: who.Account, UserID: who.UserID,
		AccessKeyID: request.AccessKeyID, NotAfter: request.NotAfter,
	}, status, nil
}

func (v *Verifier) exchange(ctx context.Context, request *iam.Request) (status int, body []byte, err error) {
	target := &url.URL{Scheme: "https", Host: request.Host, Path: "/", RawQuery: request.RawQuery}
	header := http.Header{}
	header.Set(iam.ClusterHeader, v.options.ClusterID)
	status, body, err = calleridentity.Send(ctx, v.options.Transport, target, header)
	if err == nil {
		v.limiter.hostAnswered(request.Host)
	}
	return status, body, err
}

// read returns the identity in an answer of STS, or its refusal as an error.
func read(status int, body []byte) (*calleridentity.Identity, error) {
	who, err := calleridentity.Read(status, body)
	if refused, ok := errors.AsType[*calleridentity.Refused](err); ok {
		return nil, iam.Refuse(iam.STSRefused, "STS rejects the token: %s", refused.Code)
	}
	if throttled, ok := errors.AsType[*calleridentity.Throttled](err); ok {
		return nil, &iam.Throttled{Service: service, Detail: throttled.Error()}
	}
	if mismatch, ok := errors.AsType[*calleridentity.Mismatch](err); ok {
		return nil, iam.Refuse(iam.AccountMismatch, "%s", mismatch)
	}
	return who, err
}

// outcomeOf is the outcome of a request that was sent.
func outcomeOf(err error) Outcome {
	var (
		refusal   = new(iam.Refusal)
		throttled = new(iam.Throttled)
	)
	switch {
	case err == nil:
		return Answered
	case errors.As(err, &refusal):
		return Refused
	case errors.As(err, &throttled):
		return Throttled
	}
	return Failed
}

// decided reports whether an error is an answer of STS that decides about the token.
func decided(err error) bool { return err != nil && outcomeOf(err) != Failed }
