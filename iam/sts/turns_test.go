package sts_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/fakeaws"
)

// nodeKeys are the access keys of two nodes.
const (
	nodeKey      = "ASIAEXAMPLENODE00001"
	otherNodeKey = "ASIAEXAMPLENODE00002"
)

// tokenOf is a token that says it is signed with an access key: its signature shows,
// but only to STS, whether that is so.
func tokenOf(t *testing.T, accessKey, region, secret string) string {
	t.Helper()
	return makeToken(t, fakeaws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}, "blue", region)
}

// recognise has a node's token answered, and tells the verifier that it got a user.
func recognise(t *testing.T, verifier *sts.Verifier, text string) {
	t.Helper()
	caller, err := verifier.Verify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	verifier.Recognised(caller.AccessKeyID)
}

func throttled(err error) bool { return errors.As(err, new(*iam.Throttled)) }

// TestAHostThatDoesNotAnswerHoldsUpNobodyElse is about a cluster that reaches STS in
// its own region alone, as through a VPC endpoint: whoever can send a request to the
// API server can show it tokens for all other regions, without any credentials.
func TestAHostThatDoesNotAnswerHoldsUpNobodyElse(t *testing.T) {
	node := tokenOf(t, nodeKey, "eu-west-1", "secret")
	var unreachable []string
	for _, region := range []string{"us-east-2", "us-west-1", "us-west-2", "eu-central-1"} {
		for i := range 10 {
			unreachable = append(unreachable, tokenOf(t, nodeKey, region, fmt.Sprint(i)))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]*slowly{}
		for _, text := range append(unreachable, node) {
			asked[decoded(t, text).Host] = &slowly{while: time.Hour}
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
				t.Errorf("%s was asked %d questions at once before it had answered one", host, s.atMost)
			}
		}
	})
}

// TestStrangersLeaveTurnsToWhoIsRecognised is about tokens of anybody, of which STS has
// to be asked to know that they are no good.
func TestStrangersLeaveTurnsToWhoIsRecognised(t *testing.T) {
	node := []string{tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, nodeKey, "eu-west-1", "later")}
	for _, test := range []struct {
		name, key string
		// before has the key recognised, or not.
		recognised, taken bool
	}{
		{"those of others", otherNodeKey, true, true},
		{"those who say that they are the node have their own share", nodeKey, true, false},
		{"of strangers, none is preferred", otherNodeKey, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := realNow
			asked := &slowly{}
			verifier := newVerifier(t, func(o *sts.Options) {
				o.Transport, o.PerSecond, o.Burst, o.Now = asked, 1, 40, func() time.Time { return now }
			})
			if _, err := verifier.Verify(t.Context(), node[0]); err != nil {
				t.Fatal(err)
			}
			if test.recognised {
				verifier.Recognised(nodeKey)
			}
			limited := 0
			for i := range 50 {
				if _, err := verifier.Verify(t.Context(), tokenOf(t, test.key, "eu-west-1", fmt.Sprint(i))); throttled(err) {
					limited++
				}
			}
			if limited == 0 {
				t.Fatal("strangers are not limited")
			}
			_, err := verifier.Verify(t.Context(), node[1])
			if test.taken && err != nil || !test.taken && !throttled(err) {
				t.Errorf("the node's next token: %v", err)
			}
		})
	}
}

// TestWhoPosesAsANodeTakesNoTurnOfAnother has somebody who knows the id of one node's
// access key, which is no secret, and has many tokens forged with it.
func TestWhoPosesAsANodeTakesNoTurnOfAnother(t *testing.T) {
	node, other := tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, otherNodeKey, "eu-west-1", "secret")
	later := tokenOf(t, otherNodeKey, "eu-west-1", "later")
	now := realNow
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport, o.PerSecond, o.Burst, o.Now = &slowly{}, 1, 80, func() time.Time { return now }
	})
	recognise(t, verifier, node)
	recognise(t, verifier, other)
	for i := range 90 {
		_, _ = verifier.Verify(t.Context(), tokenOf(t, nodeKey, "eu-west-1", fmt.Sprint(i)))
	}
	if _, err := verifier.Verify(t.Context(), later); err != nil {
		t.Errorf("another node's next token: %v", err)
	}
}

// TestStrangersLeaveRoomUnderWay has STS answer slowly.
func TestStrangersLeaveRoomUnderWay(t *testing.T) {
	node, later := tokenOf(t, nodeKey, "eu-west-1", "secret"), tokenOf(t, nodeKey, "eu-west-1", "later")
	strangers := tokens(t, 40)
	synctest.Test(t, func(t *testing.T) {
		asked := &slowly{while: 4 * time.Second}
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport, o.MaxInFlight, o.Now = asked, 8, clock() })
		recognise(t, verifier, node)
		var waiting []<-chan result
		for _, text := range strangers {
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

// TestWhoIsRecognisedIsForgottenInTheEnd: what is kept is bounded in time and number.
func TestWhoIsRecognisedIsForgottenInTheEnd(t *testing.T) {
	for _, test := range []struct {
		name      string
		before    time.Duration
		others    int
		forgotten bool
	}{
		{"not at once", 30 * time.Minute, 10, false},
		{"after a while", 2 * time.Hour, 0, true},
		{"for others", 0, 100, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := realNow.Add(-test.before)
			verifier := newVerifier(t, func(o *sts.Options) {
				o.Transport, o.PerSecond, o.Burst, o.CacheSize, o.Now = &slowly{}, 0.001, 8, 50, func() time.Time { return now }
			})
			verifier.Recognised(nodeKey)
			now = realNow
			for i := range test.others {
				verifier.Recognised(fmt.Sprintf("ASIAEXAMPLE%09d", i))
			}
			for _, text := range tokens(t, 10) {
				_, _ = verifier.Verify(t.Context(), text)
			}
			if _, err := verifier.Verify(t.Context(), tokenOf(t, nodeKey, "eu-west-1", "secret")); throttled(err) != test.forgotten {
				t.Errorf("the node's token: %v", err)
			}
		})
	}
}
