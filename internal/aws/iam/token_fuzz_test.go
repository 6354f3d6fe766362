package iam_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// FuzzParseToken checks that every accepted token is one GetCallerIdentity request to an
// allowed host, and that other URL parsers agree. Any other token is a refusal.
func FuzzParseToken(f *testing.F) {
	f.Add(goodURL)
	f.Add("https://sts.amazonaws.com/?" + lowerNames(goodQuery))
	for _, edit := range []struct{ piece, by string }{
		{"https://", "https://ann@"},
		{host, host + ":443"},
		{"/?", "//?"},
		{"&", ";"},
		{"Action=", "%41ction="},
		{"&Version", "&action=AssumeRole&Version"},
		{"&X-Amz-Expires=60", "&X-Amz-Expires=%2B60"},
		{"k8s", "%E2%84%AA8s"},
		{"GetCallerIdentity", "GetCallerIdentity%00"},
		{"120000Z", "120000.5Z"},
		{"%2Feu-west-1", "%2fus-east-1"},
		{"%3D", "="},
		{signature, signature + "#"},
	} {
		f.Add(strings.Replace(goodURL, edit.piece, edit.by, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		request, err := iam.ParseToken(encode(text), now(), commercial())
		if err != nil {
			checkRefusal(t, request, err)
			return
		}
		checkSent(t, request)
		checkReadAsElsewhere(t, text, request)
	})
}

// FuzzTokenText passes arbitrary text, which is not base64, to ParseToken.
func FuzzTokenText(f *testing.F) {
	f.Add(encode(goodURL))
	f.Add(encode(goodURL) + "\n")
	f.Add(encode(goodURL) + "=")
	f.Add("k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdzLmNvbS8")
	f.Fuzz(func(t *testing.T, token string) {
		request, err := iam.ParseToken(token, now(), commercial())
		if err != nil {
			checkRefusal(t, request, err)
			return
		}
		encoded, ok := strings.CutPrefix(token, iam.TokenPrefix)
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
		if !ok || err != nil || encode(string(decoded)) != token || len(token) > iam.MaxToken {
			t.Errorf("accepted: %q", token)
		}
		checkSent(t, request)
	})
}

func checkRefusal(t *testing.T, request *iam.Request, err error) {
	t.Helper()
	var refusal *iam.Refusal
	if !errors.As(err, &refusal) || !strings.HasPrefix(string(refusal.Code), "Token") || request != nil {
		t.Fatalf("got %+v, %v", request, err)
	}
	if len(refusal.Detail) > 300 || strings.IndexFunc(refusal.Detail, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		t.Errorf("the refusal is not one short line: %q", refusal.Detail)
	}
}

// checkSent checks the request that STS would receive.
func checkSent(t *testing.T, request *iam.Request) {
	t.Helper()
	regions, asked := commercial().Host(request.Host)
	if !asked || request.Host != strings.ToLower(request.Host) || strings.HasSuffix(request.Host, ".") || len(regions) != 1 ||
		request.Region != regions[0] {
		t.Errorf("the host %q would receive the request, signed for %q", request.Host, request.Region)
	}
	u, err := url.Parse(request.URL())
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme != "https" || u.Host != request.Host || u.Path != "/" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		u.RawPath != "" {
		t.Errorf("the request would go to %s", u)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	lower := map[string]string{}
	for name, value := range values {
		if _, twice := lower[strings.ToLower(name)]; twice || len(value) != 1 || value[0] == "" {
			t.Errorf("%s is in %s more than once, or empty", name, u.RawQuery)
		}
		lower[strings.ToLower(name)] = value[0]
	}
	delete(lower, "x-amz-security-token")
	if len(lower) != 8 || lower["action"] != "GetCallerIdentity" || lower["version"] != "2011-06-15" ||
		lower["x-amz-algorithm"] != "AWS4-HMAC-SHA256" {
		t.Errorf("the request is not GetCallerIdentity: %v", lower)
	}
	if !strings.Contains(";"+lower["x-amz-signedheaders"]+";", ";x-k8s-aws-id;") {
		t.Errorf("the cluster is not signed: %s", lower["x-amz-signedheaders"])
	}
	if want := request.AccessKeyID + "/" + request.SignedAt.Format("20060102") + "/" + request.Region +
		"/sts/aws4_request"; lower["x-amz-credential"] != want {
		t.Errorf("the credential is %s, but was read as %s", lower["x-amz-credential"], want)
	}
	if lower["x-amz-date"] != request.SignedAt.Format("20060102T150405Z") || request.SignedAt.Nanosecond() != 0 {
		t.Errorf("the date is %s, but was read as %s", lower["x-amz-date"], request.SignedAt)
	}
	if age := now().Sub(request.SignedAt); age > 15*time.Minute || age < -5*time.Minute ||
		!request.NotAfter.Equal(request.SignedAt.Add(15*time.Minute)) {
		t.Errorf("signed at %s, good until %s", request.SignedAt, request.NotAfter)
	}
}

// checkReadAsElsewhere compares the request with what net/url, which
// aws-iam-authenticator uses, reads of the token.
func checkReadAsElsewhere(t *testing.T, text string, request *iam.Request) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := url.ParseQuery(request.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != request.Host || values.Encode() != sent.Encode() {
		t.Errorf("the token has %s, and %s is sent", text, request.URL())
	}
}
