package aws_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
)

// FuzzCallerRequest checks that every accepted request is GetCallerIdentity for the
// endpoint.
func FuzzCallerRequest(f *testing.F) {
	const good = "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=ASIA%2F20260301%2Feu-west-1%2Fsts%2Faws4_request&X-Amz-Date=20260301T120000Z&X-Amz-Security-Token=t" +
		"&X-Amz-SignedHeaders=host%3Bx-node-authorizer-challenge&X-Amz-Signature=00"
	endpoint := &url.URL{Scheme: "https", Host: "sts.eu-west-1.amazonaws.com", Path: "/"}
	if _, _, problem := aws.ReadCallerRequest(&identitydocument.CallerIdentityRequest{
		URL: good, Method: "GET", Header: map[string][]string{identitydocument.ChallengeHeader: {"c"}},
	}, endpoint); problem != "" {
		f.Fatal(problem)
	}
	f.Add(good, "GET", "", identitydocument.ChallengeHeader, "c")
	f.Add(good+"&Action=AssumeRole", "GET", "", identitydocument.ChallengeHeader, "c")
	f.Add("https://sts.eu-west-1.amazonaws.com@attacker.example/", "POST", "x", "Host", "attacker.example")
	f.Fuzz(func(t *testing.T, text, method, body, key, value string) {
		signed := &identitydocument.CallerIdentityRequest{URL: text, Method: method, Body: body, Header: map[string][]string{key: {value}}}
		query, challenge, problem := aws.ReadCallerRequest(signed, endpoint)
		if problem != "" {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host != endpoint.Host || u.User != nil || method != "GET" || body != "" {
			t.Errorf("taken: %s %q %q", method, text, body)
		}
		if len(query["Action"]) != 1 || query.Get("Action") != "GetCallerIdentity" || challenge == "" || challenge != value {
			t.Errorf("taken: query %v, challenge %q", query, challenge)
		}
	})
}

// FuzzCallerAnswer checks that an answer is an identity, a refusal of a signature or of an account that
// contradicts the ARN, or an error.
func FuzzCallerAnswer(f *testing.F) {
	f.Add(200,
		[]byte(`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333",`+
			`"Arn":"arn:aws:iam::111122223333:user/a","UserId":"A"}}}`))
	f.Add(200,
		[]byte(`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"444455556666",`+
			`"Arn":"arn:aws:iam::111122223333:user/a","UserId":"A"}}}`))
	f.Add(200, []byte(`<R><GetCallerIdentityResult><Arn>a</Arn><Account>1</Account></GetCallerIdentityResult></R>`))
	f.Add(403, []byte(`<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>`))
	f.Add(400, []byte(`<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>`))
	f.Add(500, []byte(``))
	f.Fuzz(func(t *testing.T, status int, answer []byte) {
		arn, account, err := aws.ReadCaller(status, answer)
		var refusal *attest.Refusal
		switch {
		case err == nil:
			if status != 200 || arn == "" || account == "" {
				t.Errorf("status %d is %q of %q", status, arn, account)
			}
		case errors.As(err, &refusal):
			contradiction := status == 200 && strings.Contains(refusal.Error(), "with the account")
			if (status < 400 || status > 499) && !contradiction || refusal.Code != aws.CallerIdentityInvalid {
				t.Errorf("status %d is %v", status, refusal)
			}
		}
	})
}
