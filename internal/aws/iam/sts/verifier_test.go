package sts_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const account = "111122223333"

// world is a fake AWS under the real host names.
type world struct {
	*fakeaws.Cloud
	front *fakeaws.Front
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &world{cloud, front}
}

// verifier returns a verifier for the cluster blue with changed options.
func (w *world) verifier(t *testing.T, change func(*sts.Options)) *sts.Verifier {
	t.Helper()
	transport := w.front.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	return newVerifier(t, func(o *sts.Options) {
		o.Transport = transport
		if change != nil {
			change(o)
		}
	})
}

func newVerifier(t *testing.T, change func(*sts.Options)) *sts.Verifier {
	t.Helper()
	options := sts.Options{
		ClusterID: "blue", Hosts: newHosts(t, "aws"),
		Timeout: 10 * time.Second, MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: time.Minute, CacheSize: 10_000,
	}
	change(&options)
	verifier, err := sts.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return verifier
}

// use sets the credentials in the environment.
func use(t testing.TB, c fakeaws.Credentials) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.Token,
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"),
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_STS": "",
	} {
		t.Setenv(name, value)
	}
}

func makeToken(t testing.TB, c fakeaws.Credentials, cluster, region string) string {
	t.Helper()
	use(t, c)
	text, _, err := token.Make(t.Context(), token.Options{ClusterID: cluster, Region: region})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decoded returns the URL in a token.
func decoded(t *testing.T, text string) *url.URL {
	t.Helper()
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, iam.TokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(decoded))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// changed returns a token whose URL was changed after it was signed.
func changed(t *testing.T, text string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u := decoded(t, text)
	query := u.Query()
	change(u, query)
	u.RawQuery = query.Encode()
	return iam.TokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(u.String()))
}

// refused checks that an error is a refusal.
func refused(t *testing.T, err error, code verdict.Code, detail string) {
	t.Helper()
	refusal := new(iam.Refusal)
	if !errors.As(err, &refusal) || refusal.Code != code || !strings.Contains(refusal.Detail, detail) {
		t.Errorf("error %v, want the refusal %s with %q", err, code, detail)
	}
}

// failed checks that an error is not a decision.
func failed(t *testing.T, err error, text string) {
	t.Helper()
	if decidedByError(err) || err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one that decides nothing, with %q", err, text)
	}
}

func decidedByError(err error) bool {
	return errors.As(err, new(*iam.Refusal)) || errors.As(err, new(*iam.Throttled))
}

// noSecret checks that an error contains no secret of a token.
func noSecret(t *testing.T, err error, text string) {
	t.Helper()
	query := decoded(t, text).Query()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, shown := range []string{e.Error(), fmt.Sprintf("%#v", e)} {
			for _, secret := range []string{
				query.Get("X-Amz-Signature"), query.Get("X-Amz-Security-Token"),
				url.QueryEscape(query.Get("X-Amz-Security-Token")), strings.TrimPrefix(text, iam.TokenPrefix),
			} {
				if secret != "" && strings.Contains(shown, secret) {
					t.Errorf("a secret of the token is in the error %s", shown)
				}
			}
		}
	}
}

func TestVerifyReturnsTheCaller(t *testing.T) {
	w := newWorld(t)
	verifier := w.verifier(t, nil)
	for _, test := range []struct {
		name, region string
		credentials  fakeaws.Credentials
		arn, userID  string // no user id: any
	}{
		{
			"an instance's role", "eu-west-1", w.Session(account, "node", "i-0123456789abcdef0"),
			"arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0", "",
		},
		{
			"a session of another name", "us-east-2", w.Session(account, "admin", "alice"),
			"arn:aws:sts::111122223333:assumed-role/admin/alice", "",
		},
		{"a user", "eu-central-1", w.User(account, "alice"), "arn:aws:iam::111122223333:user/alice", ""},
		{"no region: the global host", "", w.User(account, "alice"), "arn:aws:iam::111122223333:user/alice", ""},
		{"root", "eu-west-1", w.Root(account), "arn:aws:iam::111122223333:root", account},
		{
			"a federated user", "eu-west-1", w.FederatedUser(account, "bob"), "arn:aws:sts::111122223333:federated-user/bob",
			account + ":bob",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := time.Now().Truncate(time.Second)
			caller, err := verifier.Verify(t.Context(), makeToken(t, test.credentials, "blue", test.region))
			if err != nil {
				t.Fatal(err)
			}
			if caller.ARN != test.arn || caller.Account != account || caller.AccessKeyID != test.credentials.AccessKeyID {
				t.Errorf("caller %+v", caller)
			}
			if caller.UserID == "" || test.userID != "" && caller.UserID != test.userID {
				t.Errorf("user id %q, want %q", caller.UserID, test.userID)
			}
			if life := caller.NotAfter.Sub(before); life < 15*time.Minute || life > 16*time.Minute {
				t.Errorf("the token lives %s", life)
			}
		})
	}
	if w.front.Requests("sts.eu-west-1.amazonaws.com") != 3 || w.front.Requests("sts.amazonaws.com") != 1 {
		t.Error("not the host of the region was asked")
	}
}

// TestAFederatedUserDoesNotCollideWithRoot: if its user id were cut at the colon, it would
// equal the user id of root.
func TestAFederatedUserDoesNotCollideWithRoot(t *testing.T) {
	w := newWorld(t)
	verifier := w.verifier(t, nil)
	ids := map[string]bool{}
	for _, credentials := range []fakeaws.Credentials{w.Root(account), w.FederatedUser(account, "root"), w.FederatedUser(account, "bob")} {
		caller, err := verifier.Verify(t.Context(), makeToken(t, credentials, "blue", "eu-west-1"))
		if err != nil {
			t.Fatal(err)
		}
		ids[caller.UserID] = true
	}
	if len(ids) != 3 {
		t.Errorf("three callers have the user ids %v", ids)
	}
}

func TestTokensThatSTSRejects(t *testing.T) {
	w := newWorld(t)
	verifier := w.verifier(t, nil)
	role := w.Session(account, "node", "i-0123456789abcdef0")
	good := makeToken(t, role, "blue", "eu-west-1")
	forged := role
	forged.SecretAccessKey = w.User(account, "mallory").SecretAccessKey
	for _, test := range []struct{ name, token, detail string }{
		{"for another cluster", makeToken(t, role, "shop", "eu-west-1"), "SignatureDoesNotMatch"},
		{"of a wrong secret", makeToken(t, forged, "blue", "eu-west-1"), "SignatureDoesNotMatch"},
		{
			"of an unknown access key",
			makeToken(t, fakeaws.Credentials{AccessKeyID: "AKIAUNKNOWN000000000", SecretAccessKey: "x"}, "blue", "eu-west-1"),
			"InvalidClientTokenId",
		},
		{
			"with another signature",
			changed(t, good, func(_ *url.URL, q url.Values) { q.Set("X-Amz-Signature", strings.Repeat("0", 64)) }),
			"SignatureDoesNotMatch",
		},
		{"with the security token of another caller", changed(t, good, func(_ *url.URL, q url.Values) {
			q.Set("X-Amz-Security-Token", w.FederatedUser(account, "bob").Token)
		}), "InvalidClientTokenId"},
		{"sent to another host than it was signed for", changed(t, good, func(u *url.URL, q url.Values) {
			u.Host = "sts.us-east-2.amazonaws.com"
			q.Set("X-Amz-Credential", strings.Replace(q.Get("X-Amz-Credential"), "eu-west-1", "us-east-2", 1))
		}), "SignatureDoesNotMatch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := verifier.Verify(t.Context(), test.token)
			refused(t, err, iam.STSRefused, "STS rejects the token: "+test.detail)
			noSecret(t, err, test.token)
		})
	}
	if _, err := verifier.Verify(t.Context(), good); err != nil {
		t.Errorf("the token as it was made: %v", err)
	}
}

// TestHostsOfOtherPartitionsAreNotCalled is about tokens of GovCloud in a commercial cluster
// and the other way round: their hosts look alike.
func TestHostsOfOtherPartitionsAreNotCalled(t *testing.T) {
	w := newWorld(t)
	for partition, region := range map[string]string{"aws": "us-gov-west-1", "aws-us-gov": "us-east-1", "aws-cn": "eu-west-1"} {
		verifier := w.verifier(t, func(o *sts.Options) { o.Hosts = newHosts(t, partition) })
		_, err := verifier.Verify(t.Context(), makeToken(t, w.User(account, "alice"), "blue", region))
		refused(t, err, iam.TokenHostNotAllowed, "sts."+region+".amazonaws.com")
	}
	if w.STS.Requests() != 0 {
		t.Error("STS was asked")
	}
}

// TestAMalformedTokenIsNotSent: there is no request and no cache look-up.
func TestAMalformedTokenIsNotSent(t *testing.T) {
	w := newWorld(t)
	verifier := w.verifier(t, nil)
	_, err := verifier.Verify(t.Context(), "")
	refused(t, err, iam.TokenPrefixMissing, "")
	_, err = verifier.Verify(t.Context(), iam.TokenPrefix+strings.Repeat("A", iam.MaxToken))
	refused(t, err, iam.TokenTooLong, "")
	if w.STS.Requests() != 0 {
		t.Error("STS was asked")
	}
}

func TestAFailureOfSTSIsNotARefusal(t *testing.T) {
	w := newWorld(t)
	for name, kind := range map[string]fakeaws.FaultKind{
		"failing": fakeaws.Broken, "down": fakeaws.Down, "answering nothing": fakeaws.Empty,
	} {
		t.Run(name, func(t *testing.T) {
			verifier := w.verifier(t, nil)
			text := makeToken(t, w.FederatedUser(account, "bob"), "blue", "eu-west-1")
			w.STS.Break(fakeaws.Fault{Kind: kind})
			_, err := verifier.Verify(t.Context(), text)
			failed(t, err, "verify a token with STS at sts.eu-west-1.amazonaws.com: ")
			noSecret(t, err, text)
			w.STS.Heal()
			if _, err := verifier.Verify(t.Context(), text); err != nil {
				t.Errorf("recovered: %v", err)
			}
		})
	}
}

func TestThrottlingBySTSIsReportedAsThrottled(t *testing.T) {
	w := newWorld(t)
	verifier := w.verifier(t, nil)
	text := makeToken(t, w.User(account, "alice"), "blue", "eu-west-1")
	w.STS.Break(fakeaws.Fault{Kind: fakeaws.Throttled, Times: 1})
	_, err := verifier.Verify(t.Context(), text)
	throttled := new(iam.Throttled)
	if !errors.As(err, &throttled) || throttled.Service != "STS" || throttled.Detail != "it answered with status 400, Throttling" {
		t.Errorf("error %v", err)
	}
	if _, err := verifier.Verify(t.Context(), text); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// TestUntrustedHostReceivesNoToken: the token is sent only after the TLS handshake.
func TestUntrustedHostReceivesNoToken(t *testing.T) {
	w := newWorld(t)
	transport := w.front.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	transport.TLSClientConfig.RootCAs = nil
	verifier := newVerifier(t, func(o *sts.Options) { o.Transport = transport })
	text := makeToken(t, w.User(account, "alice"), "blue", "eu-west-1")
	_, err := verifier.Verify(t.Context(), text)
	failed(t, err, "certificate")
	noSecret(t, err, text)
	if w.STS.Requests() != 0 {
		t.Error("STS was asked")
	}
}

func TestInvalidOptions(t *testing.T) {
	hosts := newHosts(t, "aws")
	for name, options := range map[string]sts.Options{
		"no cluster":                       {Hosts: hosts},
		"a line break in the cluster's id": {Hosts: hosts, ClusterID: "blue\r\nAccept: text/xml"},
		"a space at the end of its id":     {Hosts: hosts, ClusterID: "blue "},
		"an id that is not ASCII":          {Hosts: hosts, ClusterID: "blü"},
	} {
		if _, err := sts.New(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

var _ http.RoundTripper = roundTripper(nil)

// roundTripper is a stub of the network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
