package sts_test

import (
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
)

// FuzzAnswer reads arbitrary answers. Only an answer in STS's form decides.
func FuzzAnswer(f *testing.F) {
	good := identity("arn:aws:iam::111122223333:user/alice", account)
	for _, body := range []string{
		good, identity("arn:aws:iam::111122223333:user/alice",
			"444455556666"), failure("ExpiredToken"), failure("Throttling"), "", "<html>",
		"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>",
	} {
		for _, status := range []int{200, 302, 400, 403, 429, 503} {
			f.Add(status, body)
		}
	}
	token, hosts, made := someToken(f), newHosts(f, "aws"), time.Now()
	f.Fuzz(func(t *testing.T, status int, body string) {
		verifier, err := sts.New(sts.Options{
			ClusterID: "blue", Hosts: hosts, Transport: answering(status, body), Now: func() time.Time { return made },
			Timeout: 10 * time.Second, MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: time.Minute, CacheSize: 10_000,
		})
		if err != nil {
			t.Fatal(err)
		}
		caller, err := verifier.Verify(t.Context(), token)
		if (caller == nil) == (err == nil) {
			t.Fatalf("%+v and %v", caller, err)
		}
		if err != nil {
			return
		}
		arn, err := iam.ParseARN(caller.ARN)
		if status != 200 || err != nil || arn.Account != caller.Account || len(caller.Account) != 12 || caller.UserID == "" {
			t.Errorf("status %d, %q is accepted as %+v", status, body, caller)
		}
	})
}
