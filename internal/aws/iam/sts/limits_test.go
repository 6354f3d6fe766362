package sts_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
)

// result has the values that a call of Verify returned.
type result struct {
	caller *iam.Caller
	err    error
}

func verifyLater(ctx context.Context, verifier *sts.Verifier, text string) <-chan result {
	later := make(chan result, 1)
	go func() {
		caller, err := verifier.Verify(ctx, text)
		later <- result{caller, err}
	}()
	return later
}

func TestConcurrentRequestsForATokenAreCoalesced(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		asked, seen := &slowTransport{while: time.Second}, &observer{}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.Observe, o.Now = asked, seen, clock() })
		var all []<-chan result
		for range 50 {
			all = append(all, verifyLater(t.Context(), verifier, text))
		}
		for _, later := range all {
			if r := <-later; r.err != nil || r.caller.ARN != "arn:aws:iam::111122223333:user/alice" {
				t.Errorf("%+v, %v", r.caller, r.err)
			}
		}
		if asked.count() != 1 || !slices.Equal(seen.outcomes, []string{"answered 200 1s"}) {
			t.Errorf("asked %d times: %q", asked.count(), seen.outcomes)
		}
	})
}

func TestACanceledCallerDoesNotFailTheOthers(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		asked := &slowTransport{while: time.Second}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.Now = asked, clock() })
		ctx, cancel := context.WithCancel(t.Context())
		first := verifyLater(ctx, verifier, text)
		synctest.Wait()
		second := verifyLater(t.Context(), verifier, text)
		synctest.Wait()
		cancel()
		if r := <-first; !errors.Is(r.err, context.Canceled) || decidedByError(r.err) {
			t.Errorf("the canceled caller: %v", r.err)
		}
		if r := <-second; r.err != nil {
			t.Errorf("the other caller: %v", r.err)
		}
		if asked.count() != 1 {
			t.Errorf("asked %d times", asked.count())
		}
	})
}

func TestARequestWithoutWaitingCallersIsCanceled(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		asked, seen := &slowTransport{while: 5 * time.Second}, &observer{}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.Observe, o.Now = asked, seen, clock() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := verifier.Verify(ctx, text)
		if !errors.Is(err, context.DeadlineExceeded) || decidedByError(err) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if !slices.Equal(seen.outcomes, []string{"abandoned 0 1s"}) {
			t.Errorf("outcomes %q", seen.outcomes)
		}
		if _, err := verifier.Verify(t.Context(), text); err != nil || asked.count() != 2 {
			t.Errorf("a later caller sends a new request: %v, asked %d times", err, asked.count())
		}
	})
}

// TestALaterCallerDoesNotJoinAnAbandonedRequest has a transport that reacts late to its
// canceled context.
func TestALaterCallerDoesNotJoinAnAbandonedRequest(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		verifier := newVerifier(t, func(o *sts.Options) {
			o.Now = clock()
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(5 * time.Second)
				if r.Context().Err() != nil {
					return nil, r.Context().Err()
				}
				return answering(200, identity("arn:aws:iam::111122223333:user/alice", account))(r)
			})
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := verifier.Verify(ctx, text); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Errorf("the later caller: %v", err)
		}
	})
}

func TestRequestTimesOut(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		seen := &observer{}
		verifier := newVerifier(t, func(o *sts.Options) {
			o.Transport, o.Observe, o.Now = &slowTransport{while: time.Hour}, seen, clock()
		})
		_, err := verifier.Verify(t.Context(), text)
		failed(t, err, "verify a token with STS at sts.eu-west-1.amazonaws.com: no answer within 10s")
		noSecret(t, err, text)
		if !slices.Equal(seen.outcomes, []string{"failed 0 10s"}) {
			t.Errorf("outcomes %q", seen.outcomes)
		}
	})
}

// trickle sends a byte a second and never ends.
type trickle struct{ ctx context.Context }

func (r trickle) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

func TestSlowAnswerTimesOut(t *testing.T) {
	text := tokens(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		verifier := newVerifier(t, func(o *sts.Options) {
			o.Now = clock()
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(trickle{r.Context()})}, nil
			})
		})
		_, err := verifier.Verify(t.Context(), text)
		failed(t, err, "no answer within 10s")
	})
}

// endless counts the bytes that are read from it.
type endless struct{ read int }

func (r *endless) Read(p []byte) (int, error) {
	r.read += len(p)
	if r.read > 1<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func TestTheSizeOfAnAnswerIsBounded(t *testing.T) {
	body := &endless{}
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, nil
		})
	})
	_, err := verifier.Verify(t.Context(), tokens(t, 1)[0])
	failed(t, err, "the answer has more than 65536 bytes")
	if body.read > 128<<10 {
		t.Errorf("%d bytes were read", body.read)
	}
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	made := tokens(t, 30)
	synctest.Test(t, func(t *testing.T) {
		asked := &slowTransport{while: time.Second}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.MaxInFlight, o.Now = asked, 7, clock() })
		var all []<-chan result
		for _, text := range made {
			all = append(all, verifyLater(t.Context(), verifier, text))
		}
		for _, later := range all {
			if r := <-later; r.err != nil {
				t.Error(r.err)
			}
		}
		if asked.atMost != 6 || asked.count() != 30 { // one is reserved for known callers
			t.Errorf("%d at once, %d in all", asked.atMost, asked.count())
		}
	})
}

// TestACallerThatWaitsTooLongForASlotIsThrottled allows one request in flight, and STS
// answers the first only.
func TestACallerThatWaitsTooLongForASlotIsThrottled(t *testing.T) {
	made := tokens(t, 5)
	synctest.Test(t, func(t *testing.T) {
		asked, seen := &slowTransport{}, &observer{}
		verifier := newVerifier(t, func(o *sts.Options) {
			o.Transport, o.MaxInFlight, o.Now, o.Timeout, o.Observe = asked, 1, clock(), 5*time.Second, seen
		})
		if _, err := verifier.Verify(t.Context(), made[4]); err != nil {
			t.Fatal(err)
		}
		asked.while = time.Hour
		first := verifyLater(t.Context(), verifier, made[0])
		time.Sleep(time.Second)
		second := verifyLater(t.Context(), verifier, made[1])
		time.Sleep(time.Second)
		third := verifyLater(t.Context(), verifier, made[2])
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		fourth := verifyLater(ctx, verifier, made[3])
		for text, later := range map[string]<-chan result{
			"all 1 slots for requests stayed in use": third, // while the second is in flight
			"left no slot in time":                   fourth,
		} {
			if r := <-later; !errors.As(r.err, new(*iam.Throttled)) || !strings.Contains(r.err.Error(), text) {
				t.Errorf("%v, want %q", r.err, text)
			}
		}
		for _, later := range []<-chan result{first, second} {
			r := <-later
			failed(t, r.err, "no answer within 5s")
		}
		slices.Sort(seen.outcomes)
		if want := []string{
			"abandoned 0 0s", "answered 200 0s", "failed 0 5s", "failed 0 5s", "limited 0 0s",
		}; !slices.Equal(seen.outcomes, want) {
			t.Errorf("outcomes %q, want %q", seen.outcomes, want)
		}
	})
}

func TestRequestsInASecondAreBounded(t *testing.T) {
	made := tokens(t, 8)
	asked, seen := &slowTransport{}, &observer{}
	now := realNow
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport, o.Observe, o.PerSecond, o.Burst, o.Now = asked, seen, 2, 3, func() time.Time { return now }
	})
	throttled := 0
	verify := func(text string) {
		switch _, err := verifier.Verify(t.Context(), text); {
		case errors.As(err, new(*iam.Throttled)):
			throttled++
		case err != nil:
			t.Error(err)
		}
	}
	for _, text := range made {
		verify(text)
	}
	if asked.count() != 3 || throttled != 5 {
		t.Errorf("asked %d times, throttled %d times", asked.count(), throttled)
	}
	verify(made[0]) // is cached and needs no request
	now = now.Add(time.Second)
	for _, text := range made[3:] {
		verify(text)
	}
	if asked.count() != 5 || throttled != 8 {
		t.Errorf("a second later: asked %d times, throttled %d times", asked.count(), throttled)
	}
	if got := seen.outcomes[len(seen.outcomes)-1]; got != "limited 0 0s" {
		t.Errorf("outcome %q", got)
	}
}
