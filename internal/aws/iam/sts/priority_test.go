package sts_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// The access keys of two nodes.
const (
	nodeKey      = "ASIAEXAMPLENODE00001"
	otherNodeKey = "ASIAEXAMPLENODE00002"
)

// tokenOf returns a token with the id of an access key. Only STS can check whether it is
// signed with that key.
func tokenOf(t *testing.T, accessKey, region, secret string) string {
	t.Helper()
	return makeToken(t, fakeaws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}, "blue", region)
}

// authenticate verifies the token of a node, and records that it was authenticated.
func authenticate(t *testing.T, verifier *sts.Verifier, text string) {
	t.Helper()
	caller, err := verifier.Verify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	verifier.Authenticated(caller.AccessKeyID)
}

func throttled(err error) bool { return errors.As(err, new(*iam.Throttled)) }

// TestAnUnreachableHostDelaysNoOtherHost is about a cluster that reaches STS only in its
// own region, for example through a VPC endpoint. Anybody who can reach the API server can
// present tokens for all other regions, without any credentials.
func TestAnUnreachableHostDelaysNoOtherHost(t *testing.T) {
	node := tokenOf(t, nodeKey, "eu-west-1", "secret")
	var unreachable []string
	for _, region := range []string{"us-east-2", "us-west-1", "us-west-2", "eu-central-1"} {
		for i := range 10 {
			unreachable = append(unreachable, tokenOf(t, nodeKey, region, fmt.Sprint(i)))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]*slowTransport{}
		for _, text := range append(unreachable, node) {
			asked[decoded(t, text).Host] = &slowTransport{while: time.Hour}
		}
		asked["sts.eu-west-1.amazonaws.com"].while = time.Second
		verifier := newVerifier(t, func(o *sts.Options) {
			o.MaxInFlight, o.Now = 4, clock()
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) { return asked[r.URL.Host].RoundTrip(r) })
		})
		var others []<-chan result
		for _, text := range unreachable {
			others = append(others, verifyLater(t.Context(), verifier, text))
		}
		synctest.Wait()
		began := time.Now()
		if _, err := verifier.Verify(t.Context(), node); err != nil || time.Since(began) != time.Second {
			t.Errorf("a node's token: %v, after %s", err, time.Since(began))
		}
		for _, later := range others {
			if r := <-later; r.err == nil || errors.As(r.err, new(*iam.Refusal)) {
				t.Errorf("a token for a host that does not answer: %v", r.err)
			}
		}
		for host, s := range asked {
			if s.atMost > 1 {
				t.Errorf("%s got %d requests at once before its first answer", host, s.atMost)
			}
		}
	})
}

// TestUnknownCallersLeaveTheReservedRateToKnownCallers is about forged tokens, which only
// STS can detect.
func TestUnknownCallersLeaveTheReservedRateToKnownCallers(t *testing.T) {
	node := []string{tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, nodeKey, "eu-west-1", "later")}
	for _, test := range []struct {
		name, key string
		// known is whether the node is a known caller, and accepted whether its next token
		// is verified.
		known, accepted bool
	}{
		{"forged tokens with another key do not limit a known caller", otherNodeKey, true, true},
		{"forged tokens with the key of a known caller use up its priority", nodeKey, true, false},
		{"unknown callers have no priority", otherNodeKey, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := realNow
			asked := &slowTransport{}
			verifier := newVerifier(t, func(o *sts.Options) {
				o.Transport, o.PerSecond, o.Burst, o.Now = asked, 1, 40, func() time.Time { return now }
			})
			if _, err := verifier.Verify(t.Context(), node[0]); err != nil {
				t.Fatal(err)
			}
			if test.known {
				verifier.Authenticated(nodeKey)
			}
			limited := 0
			for i := range 50 {
				if _, err := verifier.Verify(t.Context(), tokenOf(t, test.key, "eu-west-1", fmt.Sprint(i))); throttled(err) {
					limited++
				}
			}
			if limited == 0 {
				t.Fatal("unknown callers are not limited")
			}
			_, err := verifier.Verify(t.Context(), node[1])
			if test.accepted && err != nil || !test.accepted && !throttled(err) {
				t.Errorf("the node's next token: %v", err)
			}
		})
	}
}

// TestForgedTokensOfOneNodeDoNotLimitAnother forges many tokens with the id of one node's
// access key, which is no secret.
func TestForgedTokensOfOneNodeDoNotLimitAnother(t *testing.T) {
	node, other := tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, otherNodeKey, "eu-west-1", "secret")
	later := tokenOf(t, otherNodeKey, "eu-west-1", "later")
	now := realNow
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport, o.PerSecond, o.Burst, o.Now = &slowTransport{}, 1, 80, func() time.Time { return now }
	})
	authenticate(t, verifier, node)
	authenticate(t, verifier, other)
	for i := range 90 {
		_, _ = verifier.Verify(t.Context(), tokenOf(t, nodeKey, "eu-west-1", fmt.Sprint(i)))
	}
	if _, err := verifier.Verify(t.Context(), later); err != nil {
		t.Errorf("another node's next token: %v", err)
	}
}

// TestUnknownCallersLeaveReservedSlotsToKnownCallers has STS answer slowTransport.
func TestUnknownCallersLeaveReservedSlotsToKnownCallers(t *testing.T) {
	node, later := tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, nodeKey, "eu-west-1", "later")
	unknown := tokens(t, 40)
	synctest.Test(t, func(t *testing.T) {
		asked := &slowTransport{while: 4 * time.Second}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.MaxInFlight, o.Now = asked, 8, clock() })
		authenticate(t, verifier, node)
		var waiting []<-chan result
		for _, text := range unknown {
			waiting = append(waiting, verifyLater(t.Context(), verifier, text))
		}
		synctest.Wait()
		began := time.Now()
		if _, err := verifier.Verify(t.Context(), later); err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("the node's next token: %v, after %s", err, time.Since(began))
		}
		for _, later := range waiting {
			<-later
		}
		if asked.atMost > 8 {
			t.Errorf("%d requests at once", asked.atMost)
		}
	})
}

// TestKnownCallersExpire: known callers are bounded in time and number.
func TestKnownCallersExpire(t *testing.T) {
	for _, test := range []struct {
		name    string
		before  time.Duration
		others  int
		expired bool
	}{
		{"not within an hour", 30 * time.Minute, 10, false},
		{"after an hour", 2 * time.Hour, 0, true},
		{"evicted by others", 0, 100, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := realNow.Add(-test.before)
			verifier := newVerifier(t, func(o *sts.Options) {
				o.Transport, o.PerSecond, o.Burst, o.CacheSize, o.Now = &slowTransport{}, 0.001, 8, 50, func() time.Time { return now }
			})
			verifier.Authenticated(nodeKey)
			now = realNow
			for i := range test.others {
				verifier.Authenticated(fmt.Sprintf("ASIAEXAMPLE%09d", i))
			}
			for _, text := range tokens(t, 10) {
				_, _ = verifier.Verify(t.Context(), text)
			}
			if _, err := verifier.Verify(t.Context(), tokenOf(t, nodeKey, "eu-west-1", "secret")); throttled(err) != test.expired {
				t.Errorf("the node's token: %v", err)
			}
		})
	}
}
