package sts_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// observer records requests and cache look-ups.
type observer struct {
	mu           sync.Mutex
	outcomes     []string
	hits, misses int
}

func (o *observer) STSRequest(outcome sts.Outcome, status int, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes = append(o.outcomes, fmt.Sprintf("%s %d %s", outcome, status, took))
}

func (o *observer) TokenCache(hit bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if hit {
		o.hits++
	} else {
		o.misses++
	}
}

// slowTransport is a stub that answers with success after a delay, and counts requests.
// While is the duration of a request; it ends early if its context ends.
type slowTransport struct {
	while time.Duration

	mu                    sync.Mutex
	requests, now, atMost int
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests++
	s.now++
	s.atMost = max(s.atMost, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	select {
	case <-time.After(s.while):
		return answering(200, identity("arn:aws:iam::111122223333:user/alice", account))(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *slowTransport) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// tokens returns n different tokens. Call it outside of synctest bubbles, because the SDK
// uses the real time.
func tokens(t *testing.T, n int) (made []string) {
	t.Helper()
	for i := range n {
		made = append(made,
			makeToken(t, fakeaws.Credentials{AccessKeyID: fmt.Sprintf("AKIAEXAMPLE%09d", i), SecretAccessKey: "secret"}, "blue",
				"eu-west-1"))
	}
	return made
}

// clock returns a clock that starts at the real time and advances with the bubble.
func clock() func() time.Time {
	ahead := time.Until(realNow)
	return func() time.Time { return time.Now().Add(ahead) }
}

// realNow is the start time of the tests, outside of all bubbles.
var realNow = time.Now()

func TestAnswerIsCached(t *testing.T) {
	made := tokens(t, 2)
	now := realNow
	asked, seen := &slowTransport{}, &observer{}
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport, o.Observe, o.Now, o.CacheTTL = asked, seen, func() time.Time { return now }, time.Minute
	})
	verify := func(text string, wantAsked int) *iam.Caller {
		t.Helper()
		caller, err := verifier.Verify(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if got := asked.count(); got != wantAsked {
			t.Errorf("STS was asked %d times, want %d", got, wantAsked)
		}
		return caller
	}
	verify(made[0], 1).ARN = "changed by who got it"
	if caller := verify(made[0], 1); caller.ARN != "arn:aws:iam::111122223333:user/alice" {
		t.Errorf("a caller's change of an answer affects the next: %s", caller.ARN)
	}
	verify(made[1], 2)
	now = now.Add(time.Minute - time.Nanosecond)
	verify(made[0], 2)
	now = now.Add(time.Nanosecond)
	verify(made[0], 3)
	if seen.hits != 2 || seen.misses != 3 {
		t.Errorf("%d hits, %d misses", seen.hits, seen.misses)
	}
}

func TestCachedAnswerExpiresWithItsToken(t *testing.T) {
	text := tokens(t, 1)[0]
	asked := &slowTransport{}
	now := realNow
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport, o.Now, o.CacheTTL = asked, func() time.Time { return now }, time.Hour
	})
	caller, err := verifier.Verify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	now = caller.NotAfter.Add(-time.Nanosecond)
	if _, err := verifier.Verify(t.Context(), text); err != nil || asked.count() != 1 {
		t.Errorf("just before the token's end: %v, asked %d times", err, asked.count())
	}
	now = caller.NotAfter
	_, _ = verifier.Verify(t.Context(), text) // The token may be valid or expired at this moment.
	now = caller.NotAfter.Add(time.Second)
	_, err = verifier.Verify(t.Context(), text)
	refused(t, err, iam.TokenTooOld, "")
}

func TestCacheIsBounded(t *testing.T) {
	made := tokens(t, 4)
	asked := &slowTransport{}
	verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.CacheSize = asked, 3 })
	for _, text := range slices.Concat(made, made[1:]) {
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if asked.count() != 4 {
		t.Errorf("asked %d times: the newest are not all cached", asked.count())
	}
	if _, err := verifier.Verify(t.Context(), made[0]); err != nil || asked.count() != 5 {
		t.Errorf("%v, asked %d times: the oldest is still cached", err, asked.count())
	}
}

func TestRefusalIsCachedBriefly(t *testing.T) {
	text := tokens(t, 1)[0]
	now, requests, body := realNow, 0, failure("InvalidClientTokenId")
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Now = func() time.Time { return now }
		o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			requests++
			if requests > 1 {
				return answering(200, identity("arn:aws:iam::111122223333:user/alice", account))(r)
			}
			return answering(403, body)(r)
		})
	})
	for range 3 {
		_, err := verifier.Verify(t.Context(), text)
		refused(t, err, iam.STSRefused, "InvalidClientTokenId")
	}
	if requests != 1 {
		t.Errorf("asked %d times", requests)
	}
	now = now.Add(5 * time.Second)
	if _, err := verifier.Verify(t.Context(), text); err != nil {
		t.Errorf("the credentials are known by now: %v", err)
	}
}

func TestErrorsAreNotCached(t *testing.T) {
	text := tokens(t, 1)[0]
	for _, first := range []roundTripper{
		answering(500, failure("InternalFailure")), answering(429, ""), answering(302, ""), answering(200, ""),
		func(*http.Request) (*http.Response, error) { return nil, io.EOF },
	} {
		requests := 0
		verifier := newVerifier(t, func(o *sts.Options) {
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				if requests++; requests == 1 {
					return first(r)
				}
				return answering(200, identity("arn:aws:iam::111122223333:user/alice", account))(r)
			})
		})
		if _, err := verifier.Verify(t.Context(), text); err == nil {
			t.Error("no error")
		}
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Errorf("the next try: %v", err)
		}
	}
}

func TestNegativeTTLDisablesTheCache(t *testing.T) {
	text := tokens(t, 1)[0]
	asked := &slowTransport{}
	verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.CacheTTL = asked, 0 })
	for range 3 {
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if asked.count() != 3 {
		t.Errorf("asked %d times", asked.count())
	}
}
