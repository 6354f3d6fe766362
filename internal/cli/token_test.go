package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// startSTS starts a fake STS under the real names for the programs of a script, with the user
// alice of account 111122223333. The role arn:aws:iam::444455556666:role/admin requires the
// external id shop-7:
//
//	sts CLUSTER
//
// It adds a command that checks the user of the token in a file, which is plain (VERSION none)
// or in an ExecCredential:
//
//	token-is-of FILE VERSION ARN-PREFIX
func startSTS(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sts CLUSTER")
	}
	cloud, err := fakeaws.New()
	ts.Check(err)
	ts.Defer(cloud.Close)
	front, err := cloud.Front(ts.MkAbs("."))
	ts.Check(err)
	cloud.DemandExternalID("arn:aws:iam::444455556666:role/admin", "shop-7")
	alice := cloud.User("111122223333", "alice")
	for _, variable := range append(front.Environment(),
		"AWS_ACCESS_KEY_ID="+alice.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+alice.SecretAccessKey, "AWS_SESSION_TOKEN=",
		"AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_EC2_METADATA_DISABLED=true") {
		name, value, _ := strings.Cut(variable, "=")
		ts.Setenv(name, value)
	}
	hosts, err := sts.NewHosts(context.Background(), "aws", nil)
	ts.Check(err)
	transport := front.Transport()
	ts.Defer(transport.CloseIdleConnections)
	verifier, err := sts.New(sts.Options{
		ClusterID: args[0], Hosts: hosts, Transport: transport,
		Timeout: 10 * time.Second, MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: time.Minute, CacheSize: 10_000,
	})
	ts.Check(err)
	ts.SetCmd("token-is-of", func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 3 {
			ts.Fatalf("usage: token-is-of FILE VERSION ARN-PREFIX")
		}
		tokenIsOf(ts, verifier, args)
	})
}

// tokenIsOf checks that an ExecCredential expires a minute before its token.
func tokenIsOf(ts *testscript.TestScript, verifier *sts.Verifier, args []string) {
	text, found := strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), clientauthv1.ExecCredential{}
	if args[1] != "none" {
		ts.Check(json.Unmarshal([]byte(text), &found))
		if want := "client.authentication.k8s.io/" + args[1]; found.APIVersion != want || found.Kind != "ExecCredential" {
			ts.Fatalf("a %s of %s, want one of %s", found.Kind, found.APIVersion, want)
		}
		text = found.Status.Token
	}
	caller, err := verifier.Verify(context.Background(), text)
	ts.Check(err)
	if !strings.HasPrefix(caller.ARN, args[2]) {
		ts.Fatalf("the token is of %s, want %s", caller.ARN, args[2])
	}
	if end := caller.NotAfter.Add(-time.Minute); found.Status != nil && !found.Status.ExpirationTimestamp.Time.Equal(end) {
		ts.Fatalf("the credential ends at %s, want %s", found.Status.ExpirationTimestamp, end)
	}
}
