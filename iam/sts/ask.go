package sts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/iam"
)

// service is what errors call STS.
const service = "STS"

// maxAnswer is how much of an answer is read, in bytes. One has less than a kilobyte.
const maxAnswer = 64 << 10

// ask puts a question to STS as soon as the limits let it.
func (v *Verifier) ask(ctx context.Context, q *question, request *iam.Request) answer {
	release, err := v.turns.take(ctx, request)
	if err != nil {
		v.observe(ctx, Limited, 0, 0)
		return answer{err: err}
	}
	defer release()
	q.sent.Store(true)
	began := v.options.Now()
	caller, status, err := v.send(ctx, request)
	ended := v.options.Now()
	v.observe(ctx, outcomeOf(err), status, ended.Sub(began))
	return answer{caller: caller, err: err, at: ended}
}

// observe tells what came of a request. The context of a question ends when nobody
// waits for its answer.
func (v *Verifier) observe(ctx context.Context, outcome Outcome, status int, took time.Duration) {
	if ctx.Err() != nil && (outcome == Failed || outcome == Limited) {
		outcome = Abandoned
	}
	v.options.Observe.STSRequest(outcome, status, took)
}

// send sends a request and reads the answer. Redirects are answers like others: the
// transport does not follow them.
func (v *Verifier) send(ctx context.Context, request *iam.Request) (caller *iam.Caller, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.options.Timeout)
	defer cancel()
	status, body, err := v.exchange(ctx, request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: %w", v.options.Timeout, context.DeadlineExceeded)
		}
		return nil, status, fmt.Errorf("asking STS at %s whose a token is: %w", request.Host, err)
	}
	who, err := readAnswer(status, body)
	if decided(err) {
		return nil, status, err
	}
	if err != nil {
		return nil, status, fmt.Errorf("asking STS at %s whose a token is: %w", request.Host, err)
	}
	return &iam.Caller{
		ARN: who.ARN, Account: who.Account, UserID: who.UserID,
		AccessKeyID: request.AccessKeyID, NotAfter: request.NotAfter,
	}, status, nil
}

func (v *Verifier) exchange(ctx context.Context, request *iam.Request) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, request.URL(), nil)
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	req.Header.Set(iam.ClusterHeader, v.options.ClusterID)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "node-authorizer")
	resp, err := v.options.Transport.RoundTrip(req)
	if err != nil {
		return 0, nil, withoutSecrets(err, request)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return resp.StatusCode, nil, fmt.Errorf("reading the answer: %w", withoutSecrets(err, request))
	}
	v.turns.answers(request.Host)
	return resp.StatusCode, body, nil
}

// withoutSecrets keeps an error if nothing of a request's query is in it.
func withoutSecrets(err error, request *iam.Request) error {
	text := err.Error()
	for parameter := range strings.SplitSeq(request.RawQuery, "&") {
		_, encoded, _ := strings.Cut(parameter, "=")
		value, decodingErr := url.QueryUnescape(encoded)
		if decodingErr != nil || len(value) >= 16 && (strings.Contains(text, value) || strings.Contains(text, encoded)) {
			return errors.New("the connection failed, and why cannot be told without telling the token")
		}
	}
	return err
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

// decided reports whether an error is an answer of STS.
func decided(err error) bool { return err != nil && outcomeOf(err) != Failed }
