package calleridentity_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/calleridentity"
)

const (
	alice = `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333",` +
		`"Arn":"arn:aws:iam::111122223333:user/alice","UserId":"AIDAEXAMPLE"}}}`
	fault = `{"Error":{"Code":"CODE"}}`
)

func TestRead(t *testing.T) {
	code := func(code string) string { return strings.Replace(fault, "CODE", code, 1) }
	const identity, refused, throttled, mismatch, nothing = "identity", "refusal", "throttling", "mismatch", "nothing"
	for _, test := range []struct {
		name   string
		status int
		answer string
		want   string
	}{
		{"an identity", 200, alice, identity},
		{"an account that is not that of the ARN", 200, strings.Replace(alice, `"111122223333"`, `"444455556666"`, 1), mismatch},
		{"an invalid signature", 403, code("SignatureDoesNotMatch"), refused},
		{"too many requests", 429, "", throttled},
		{"too many requests, by the code", 400, code("Throttling"), throttled},
		{"a failure", 500, code("InternalFailure"), nothing},
		{"a timeout", 408, code("RequestTimeout"), nothing},
		{"a redirect with a code", 302, code("ExpiredToken"), nothing},
		{"a refusal in an unknown form", 403, "no", nothing},
		{"an ARN twice", 200, strings.Replace(alice, `"Arn"`, `"Arn":"arn:aws:iam::111122223333:root","Arn"`, 1), nothing},
		{"an invalid ARN", 200, strings.Replace(alice, "arn:aws", "aws", 1), nothing},
		{"no user id", 200, strings.Replace(alice, "AIDAEXAMPLE", "", 1), nothing},
		{"too long an answer", 200, strings.Repeat(" ", calleridentity.MaxAnswer) + alice, nothing},
	} {
		who, err := calleridentity.Read(test.status, []byte(test.answer))
		got := nothing
		switch {
		case err == nil:
			got = identity
		case errors.As(err, new(*calleridentity.Refused)):
			got = refused
		case errors.As(err, new(*calleridentity.Throttled)):
			got = throttled
		case errors.As(err, new(*calleridentity.Mismatch)):
			got = mismatch
		}
		if (who != nil) != (err == nil) || got != test.want {
			t.Errorf("%s is a %s: %+v, %v; want a %s", test.name, got, who, err, test.want)
		}
	}
}

// transport is a function that carries requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSentRequestIsTheSignedOne(t *testing.T) {
	target := &url.URL{Scheme: "https", Host: "sts.eu-west-1.amazonaws.com", Path: "/", RawQuery: "Action=GetCallerIdentity"}
	header := http.Header{"X-Signed": {"value"}}
	status, answer, err := calleridentity.Send(t.Context(), transport(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || r.URL.String() != target.String() || r.Body != nil {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if r.Header.Get("X-Signed") != "value" || r.Header.Get("Accept") != "application/json" || len(r.Header) != 3 {
			t.Errorf("header %v", r.Header)
		}
		return &http.Response{StatusCode: 302, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", calleridentity.MaxAnswer+10)))}, nil
	}), target, header)
	if status != 302 || len(answer) != calleridentity.MaxAnswer+1 || err != nil {
		t.Errorf("status %d, %d bytes, %v", status, len(answer), err)
	}
	if len(header) != 1 {
		t.Errorf("the caller's header was changed: %v", header)
	}
}

func TestErrorsContainNothingOfTheRequest(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	target := &url.URL{Scheme: "https", Host: "sts.eu-west-1.amazonaws.com", Path: "/", RawQuery: "X-Amz-Signature=" + secret}
	for name, failing := range map[string]transport{
		"the connection": func(r *http.Request) (*http.Response, error) { return nil, errors.New("cannot get " + r.URL.String()) },
		"the answer": func(r *http.Request) (*http.Response, error) {
			body, writer := io.Pipe()
			_ = writer.CloseWithError(errors.New("cannot read " + r.URL.RawQuery))
			return &http.Response{StatusCode: 200, Body: body}, nil
		},
	} {
		_, _, err := calleridentity.Send(t.Context(), failing, target, http.Header{})
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "the cause is not shown") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
