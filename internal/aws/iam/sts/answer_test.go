package sts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func identity(arn, account string) string {
	return fmt.Sprintf(`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":%q,"Arn":%q,`+
		`"UserId":"AIDAEXAMPLE"},"ResponseMetadata":{"RequestId":"x"}}}`,
		account, arn)
}

func failure(code string) string {
	return fmt.Sprintf(`{"Error":{"Code":%q,"Message":"the request was …","Type":"Sender"},"RequestId":"x"}`, code)
}

// someToken returns a token that passes all checks before the request to STS.
func someToken(t testing.TB) string {
	t.Helper()
	return makeToken(t, fakeaws.Credentials{
		AccessKeyID: "ASIAEXAMPLE000000000", SecretAccessKey: "secret", Token: "IQoJb3JpZ2luX2Vj+/" + strings.Repeat("t", 300) + "=",
	}, "blue", "eu-west-1")
}

// TestAnswers serves answers that STS does not give.
func TestAnswers(t *testing.T) {
	const alice = "arn:aws:iam::111122223333:user/alice"
	good := identity(alice, account)
	const decidesNothing, throttled = verdict.Code(""), verdict.Code("throttled")
	for _, test := range []struct {
		name, body string
		status     int
		want       verdict.Code
		detail     string
	}{
		{
			"the account of the ARN is not the account", identity(alice, "444455556666"), 200, iam.AccountMismatch,
			"with the account 444455556666",
		},
		{"refused", failure("InvalidClientTokenId"), 403, iam.STSRefused, "InvalidClientTokenId"},
		{"expired", failure("ExpiredToken"), 403, iam.STSRefused, "ExpiredToken"},
		{
			"refused in XML", "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>", 403,
			iam.STSRefused, "SignatureDoesNotMatch",
		},

		{"too many requests", "", 429, throttled, "status 429, without an error code of STS"},
		{"too many requests, with a page", "<html>", 429, throttled, "429"},
		{"throttling with status 400", failure("Throttling"), 400, throttled, "status 400, Throttling"},
		{"throttling with status 503", failure("RequestLimitExceeded"), 503, throttled, "status 503, RequestLimitExceeded"},
		{
			"throttling in XML", "<ErrorResponse><Error><Code>RequestLimitExceeded</Code></Error></ErrorResponse>", 400,
			throttled, "RequestLimitExceeded",
		},

		{"a failure of STS", failure("InternalFailure"), 500, decidesNothing, "status 500, InternalFailure"},
		{"STS is not available", failure("ServiceUnavailable"), 503, decidesNothing, "503"},
		{"a refusal that is not in STS's form", "no", 403, decidesNothing, "status 403, without an error code of STS"},
		{"a refusal with an invalid code", failure("a\nb"), 403, decidesNothing, "without an error code"},
		{"a request that took too long", failure("RequestTimeout"), 408, decidesNothing, "408"},
		{"another success", good, 201, decidesNothing, "status 201"},
		{"no content", "", 204, decidesNothing, "status 204"},
		{"nothing", "", 200, decidesNothing, "not the JSON of GetCallerIdentity"},
		{"a page", "<html></html>", 200, decidesNothing, "not the JSON"},
		{"XML", "<GetCallerIdentityResponse/>", 200, decidesNothing, "not the JSON"},
		{"an answer cut off", good[:60], 200, decidesNothing, "not the JSON"},
		{"two answers", good + good, 200, decidesNothing, "not the JSON"},
		{
			"a key twice", strings.Replace(good, `"Arn"`, `"Arn":"arn:aws:iam::111122223333:root","Arn"`, 1), 200,
			decidesNothing, "not the JSON",
		},
		{"a key in another case", strings.Replace(good, `"Arn"`, `"arn"`, 1), 200, decidesNothing, "not the JSON"},
		{"an error with status 200", failure("InvalidClientTokenId"), 200, decidesNothing, "lacks an ARN"},
		{"another action's answer", strings.ReplaceAll(good, "GetCallerIdentity", "GetSessionToken"), 200, decidesNothing, "lacks an ARN"},
		{"no ARN", identity("", account), 200, decidesNothing, "lacks an ARN"},
		{"no account", identity(alice, ""), 200, decidesNothing, "lacks an ARN, an account"},
		{"an account of letters", identity(alice, "11112222333x"), 200, decidesNothing, "an account"},
		{"no user id", strings.Replace(good, "AIDAEXAMPLE", "", 1), 200, decidesNothing, "a user id"},
		{"an invalid ARN", identity("alice", account), 200, decidesNothing, "not an ARN"},
		{"an endless answer", good[:len(good)-1] + strings.Repeat(" ", 65<<10) + "}", 200, decidesNothing, "more than 65536 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			verifier := newVerifier(t, func(o *sts.Options) { o.Transport = answering(test.status, test.body) })
			text := someToken(t)
			_, err := verifier.Verify(t.Context(), text)
			noSecret(t, err, text)
			switch test.want {
			case decidesNothing:
				failed(t, err, test.detail)
				failed(t, err, "verify a token with STS at sts.eu-west-1.amazonaws.com")
			case throttled:
				if !errors.As(err, new(*iam.Throttled)) || !strings.Contains(err.Error(), test.detail) {
					t.Errorf("error %v, want a throttling with %q", err, test.detail)
				}
			default:
				refused(t, err, test.want, test.detail)
			}
		})
	}
	t.Run("a valid answer", func(t *testing.T) {
		verifier := newVerifier(t, func(o *sts.Options) { o.Transport = answering(200, good) })
		if caller, err := verifier.Verify(t.Context(), someToken(t)); err != nil || caller.ARN != alice {
			t.Errorf("%+v, %v", caller, err)
		}
	})
}

func answering(status int, body string) roundTripper {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// TestRedirectsAreNotFollowed is about hosts of STS that redirect to a host of an attacker.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	attacker := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, identity("arn:aws:iam::111122223333:root", account))
	}))
	defer attacker.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		asked := 0
		redirecting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Location", attacker.URL+r.URL.RequestURI())
			w.WriteHeader(status)
			_, _ = io.WriteString(w, identity("arn:aws:iam::111122223333:root", account))
		}))
		// All hosts resolve to this server. Its certificate is trusted here.
		transport := redirecting.Client().Transport.(*http.Transport)
		transport.TLSClientConfig.InsecureSkipVerify = true
		transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			to := redirecting.Listener.Addr().String()
			if address == attacker.Listener.Addr().String() {
				to = address
			}
			return new(net.Dialer).DialContext(ctx, "tcp", to)
		}
		text := someToken(t)
		_, err := newVerifier(t, func(o *sts.Options) { o.Transport = transport }).Verify(t.Context(), text)
		failed(t, err, fmt.Sprintf("it redirects, with status %d, which is not followed", status))
		noSecret(t, err, text)
		if asked != 1 || elsewhere.Load() != 0 {
			t.Errorf("status %d: %d requests, and %d elsewhere", status, asked, elsewhere.Load())
		}
		redirecting.Close()
	}
}

// TestRequestIsTheSignedOne inspects the request that is sent.
func TestRequestIsTheSignedOne(t *testing.T) {
	text := someToken(t)
	want := decoded(t, text)
	verifier := newVerifier(t, func(o *sts.Options) {
		o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet || r.Body != nil || r.URL.Scheme != "https" || r.URL.Host != want.Host || r.URL.Path != "/" {
				t.Errorf("%s %s", r.Method, r.URL.Redacted())
			}
			if got := r.URL.Query(); got.Encode() != want.Query().Encode() {
				t.Error("the query was changed")
			}
			if r.Header.Get(iam.ClusterHeader) != "blue" || r.Header.Get("Accept") != "application/json" || len(r.Header) != 3 {
				t.Errorf("header %v", r.Header)
			}
			return nil, io.ErrUnexpectedEOF
		})
	})
	_, err := verifier.Verify(t.Context(), text)
	failed(t, err, "unexpected EOF")
}

// TestNetworkErrorsContainNoSecret has the transport return errors that contain the
// request.
func TestNetworkErrorsContainNoSecret(t *testing.T) {
	for name, wrap := range map[string]func(*http.Request) error{
		"the URL":               func(r *http.Request) error { return &url.Error{Op: "Get", URL: r.URL.String(), Err: io.EOF} },
		"the query":             func(r *http.Request) error { return errors.New("cannot send " + r.URL.RawQuery) },
		"the signature":         func(r *http.Request) error { return errors.New(r.URL.Query().Get("X-Amz-Signature")) },
		"the security token":    func(r *http.Request) error { return errors.New(r.URL.Query().Get("X-Amz-Security-Token")) },
		"the secret further in": func(r *http.Request) error { return &net.OpError{Op: "read", Err: errors.New(r.URL.RawQuery)} },
	} {
		t.Run(name, func(t *testing.T) {
			text := someToken(t)
			for _, transport := range []roundTripper{
				func(r *http.Request) (*http.Response, error) { return nil, wrap(r) },
				func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: io.NopCloser(failingReader{wrap(r)})}, nil
				},
			} {
				_, err := newVerifier(t, func(o *sts.Options) { o.Transport = transport }).Verify(t.Context(), text)
				failed(t, err, "the cause is not shown")
				noSecret(t, err, text)
			}
		})
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
