package iam_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// hosts are the hosts of a partition, with the regions that sign for them.
type hosts map[string][]string

func (h hosts) Host(host string) ([]string, bool) {
	regions, ok := h[host]
	return regions, ok
}

func commercial() hosts {
	return hosts{
		"sts.amazonaws.com":                {"us-east-1"},
		"sts.eu-west-1.amazonaws.com":      {"eu-west-1"},
		"sts.us-east-1.amazonaws.com":      {"us-east-1"},
		"sts-fips.us-east-1.amazonaws.com": {"us-east-1"},
		"sts.eu-west-1.api.aws":            {"eu-west-1"},
		// Host names are compared exactly, so that no look-up has another form of a name.
		"STS.eu-west-1.amazonaws.com": {"eu-west-1"}, "sts.eu-west-1.amazonaws.com.": {"eu-west-1"}, "": {"eu-west-1"},
		"[::1]": {"eu-west-1"}, "sts.eu-west-1.amazonaws.com%2e": {"eu-west-1"},
	}
}

func government() hosts {
	return hosts{"sts.us-gov-west-1.amazonaws.com": {"us-gov-west-1"}}
}

const (
	accessKey     = "ASIAEXAMPLE000000001"
	signature     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	securityToken = "IQoJb3JpZ2luX2VjEXAMPLE/secret+token=="

	host       = "sts.eu-west-1.amazonaws.com"
	credential = accessKey + "%2F20260301%2Feu-west-1%2Fsts%2Faws4_request"

	// goodQuery is a query as the SDKs make it.
	goodQuery = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=" + credential +
		"&X-Amz-Date=20260301T120000Z&X-Amz-Expires=60&X-Amz-Security-Token=IQoJb3JpZ2luX2VjEXAMPLE%2Fsecret%2Btoken%3D%3D" +
		"&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature=" + signature
	goodURL = "https://" + host + "/?" + goodQuery
)

func now() time.Time { return time.Date(2026, time.March, 1, 12, 1, 0, 0, time.UTC) }

func encode(text string) string {
	return iam.TokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// with replaces a part of the good URL. The part must occur once.
func with(t *testing.T, piece, by string) string {
	t.Helper()
	if strings.Count(goodURL, piece) != 1 {
		t.Fatalf("the URL has %q %d times", piece, strings.Count(goodURL, piece))
	}
	return strings.Replace(goodURL, piece, by, 1)
}

func TestTokenIsParsedToItsRequest(t *testing.T) {
	got, err := iam.ParseToken(encode(goodURL), now(), commercial())
	if err != nil {
		t.Fatal(err)
	}
	signed := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	want := iam.Request{
		Host: host, Region: "eu-west-1", AccessKeyID: accessKey, RawQuery: goodQuery,
		SignedAt: signed, NotAfter: signed.Add(15 * time.Minute),
	}
	if *got != want {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	if got.URL() != goodURL {
		t.Errorf("the request is %s", got.URL())
	}
}

// TestValidTokens edits the good URL once per case.
func TestValidTokens(t *testing.T) {
	for _, tc := range []struct {
		rule, piece, by string
	}{
		{
			"the global host, signed for us-east-1",
			host + "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + credential,
			"sts.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" +
				accessKey + "%2F20260301%2Fus-east-1%2Fsts%2Faws4_request",
		},
		{"a dual-stack host", host, "sts.eu-west-1.api.aws"},
		{
			"the credentials of a user, who has no security token",
			"&X-Amz-Security-Token=IQoJb3JpZ2luX2VjEXAMPLE%2Fsecret%2Btoken%3D%3D", "",
		},
		{"slashes that are not encoded", credential, strings.ReplaceAll(credential, "%2F", "/")},
		{"hexadecimal digits in lower case", credential, strings.ReplaceAll(credential, "%2F", "%2f")},
		{"all parameters in lower case", goodQuery, lowerNames(goodQuery)},
		{"it expires at once", "X-Amz-Expires=60", "X-Amz-Expires=0"},
		{"it expires after a quarter of an hour", "X-Amz-Expires=60", "X-Amz-Expires=900"},
		{"signed 15 minutes ago", "20260301T120000Z", "20260301T114600Z"},
		{"signed by a clock that is 5 minutes ahead", "20260301T120000Z", "20260301T120600Z"},
		{"parameters in another order", "Action=GetCallerIdentity&Version=2011-06-15", "Version=2011-06-15&Action=GetCallerIdentity"},
		{"more headers are signed than are sent, which STS checks", "host%3Bx-k8s-aws-id", "accept%3Bhost%3Bx-k8s-aws-id"},
		{"the longest access key id", "=" + accessKey, "=" + strings.Repeat("A", 128)},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			text := with(t, tc.piece, tc.by)
			got, err := iam.ParseToken(encode(text), now(), commercial())
			if err != nil {
				t.Fatal(err)
			}
			asked, want := query(t, text), query(t, got.URL())
			if asked.Encode() != want.Encode() {
				t.Errorf("the token has %v, and %v is sent", want, asked)
			}
		})
	}
}

// lowerNames writes the names of parameters in lower case.
func lowerNames(query string) string {
	var pieces []string
	for piece := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(piece, "=")
		pieces = append(pieces, strings.ToLower(name)+"="+value)
	}
	return strings.Join(pieces, "&")
}

func query(t *testing.T, text string) url.Values {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// refused checks that a token is refused with a code, and that the error contains no
// secret.
func refused(t *testing.T, token string, hosts iam.Hosts, want verdict.Code) {
	t.Helper()
	request, err := iam.ParseToken(token, now(), hosts)
	var refusal *iam.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %+v, %v", request, err)
	}
	if refusal.Code != want || request != nil {
		t.Errorf("got %v, want %s", refusal, want)
	}
	for _, secret := range []string{"IQoJb3JpZ2lu", signature[:32], "hunter2"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n\x00") {
		t.Errorf("the error has more than one line: %q", err)
	}
}

func TestMalformedTokenIsRefused(t *testing.T) {
	good := encode(goodURL)
	for _, tc := range []struct {
		rule, token string
		want        verdict.Code
	}{
		{"longer than 4096 bytes", iam.TokenPrefix + strings.Repeat("A", iam.MaxToken), iam.TokenTooLong},
		{"megabytes", strings.Repeat(good, 4096), iam.TokenTooLong},
		{"nothing", "", iam.TokenPrefixMissing},
		{"a token of another kind", "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", iam.TokenPrefixMissing},
		{"half a prefix", "k8s-aws-v1", iam.TokenPrefixMissing},
		{"another version", "k8s-aws-v2." + good[len(iam.TokenPrefix):], iam.TokenPrefixMissing},
		{"the prefix in another case", "K8s-aws-v1." + good[len(iam.TokenPrefix):], iam.TokenPrefixMissing},
		{"the prefix with a Kelvin sign", "\u212a8s-aws-v1." + good[len(iam.TokenPrefix):], iam.TokenPrefixMissing},
		{"white space before", " " + good, iam.TokenPrefixMissing},
		{"the prefix twice", iam.TokenPrefix + good, iam.TokenEncodingWrong},
		{"a line break after", good + "\n", iam.TokenEncodingWrong},
		{"line breaks within, which decoders skip", good[:40] + "\r\n" + good[40:], iam.TokenEncodingWrong},
		{"white space after", good + " ", iam.TokenEncodingWrong},
		{"padding", iam.TokenPrefix + base64.URLEncoding.EncodeToString([]byte(goodURL+"0")), iam.TokenEncodingWrong},
		{"padding", good + "=", iam.TokenEncodingWrong},
		{"the alphabet with + and /", iam.TokenPrefix + "aHR0cHM6Ly9+fn5/", iam.TokenEncodingWrong},
		{"not canonical: spare bits that are set", spareBits(t), iam.TokenEncodingWrong},
		{"a byte too many", good + "A", iam.TokenEncodingWrong},
		{"bytes that are not ASCII", good + "é", iam.TokenEncodingWrong},
		{"a zero byte", good + "\x00", iam.TokenEncodingWrong},
		{"no URL", iam.TokenPrefix, iam.TokenNotHTTPS},
	} {
		t.Run(tc.rule, func(t *testing.T) { refused(t, tc.token, commercial(), tc.want) })
	}
}

// spareBits returns a token whose last character has an unused bit set.
func spareBits(t *testing.T) string {
	t.Helper()
	for _, text := range []string{goodURL, goodURL + "0", goodURL + "00"} {
		token := encode(text)
		if len(text)%3 == 1 {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			last := strings.IndexByte(alphabet, token[len(token)-1])
			other := token[:len(token)-1] + alphabet[last+1:last+2]
			a, errA := base64.RawURLEncoding.DecodeString(token[len(iam.TokenPrefix):])
			b, errB := base64.RawURLEncoding.DecodeString(other[len(iam.TokenPrefix):])
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Fatalf("%s and %s are not the same text", token, other)
			}
			return other
		}
	}
	t.Fatal("no text has spare bits")
	return ""
}

func TestInvalidURLIsRefused(t *testing.T) {
	for _, tc := range []struct {
		rule, piece, by string
		want            verdict.Code
	}{
		{"spaces", "https://", "https:// ", iam.TokenNotURL},
		{"a space before", "https://", " https://", iam.TokenNotURL},
		{"a tab", "&Version", "\t&Version", iam.TokenNotURL},
		{"a line break, and a header after it", "/?", "/ HTTP/1.1\r\nx-k8s-aws-id: shop\r\n\r\n?", iam.TokenNotURL},
		{"a zero byte in the host", host, host + "\x00.attacker.example", iam.TokenNotURL},
		{"invalid UTF-8", "GetCallerIdentity", "GetCallerIdentity\xff", iam.TokenNotURL},
		{"a backslash, which browsers treat as a slash", host, host + `\@attacker.example`, iam.TokenNotURL},
		{"letters of another alphabet in the host", "sts.", "\u0455ts.", iam.TokenNotURL},
		{"a full-width dot in the host", "sts.eu", "sts\u3002eu", iam.TokenNotURL},

		{"http", "https://", "http://", iam.TokenNotHTTPS},
		{"HTTPS in upper case", "https://", "HTTPS://", iam.TokenNotHTTPS},
		{"no scheme", "https://", "//", iam.TokenNotHTTPS},
		{"a URL without slashes", "https://", "https:", iam.TokenNotHTTPS},
		{"another scheme", "https://", "file://", iam.TokenNotHTTPS},

		{"another host", host, "attacker.example", iam.TokenHostNotAllowed},
		{"no host", host, "", iam.TokenHostNotAllowed},
		{"three slashes", "https://", "https:///", iam.TokenHostNotAllowed},
		{"a service of AWS that is not STS", host, "iam.amazonaws.com", iam.TokenHostNotAllowed},
		{"a host that begins like STS", host, host + ".attacker.example", iam.TokenHostNotAllowed},
		{"a host that ends like STS", host, "attacker-" + host, iam.TokenHostNotAllowed},
		{"a host in upper case", host, "STS.eu-west-1.amazonaws.com", iam.TokenHostNotAllowed},
		{"a host with a final dot", host, host + ".", iam.TokenHostNotAllowed},
		{"a host that is encoded", host, host + "%2e", iam.TokenHostNotAllowed},
		{"an address", host, "192.0.2.1", iam.TokenHostNotAllowed},
		{"an IPv6 address", host, "[::1]", iam.TokenHostNotAllowed},
		{"an IPv6 address with a port", host, "[::1]:443", iam.TokenHostNotAllowed},
		{"an IPv6 address with a zone that looks like STS", host, "[fe80::1%25" + host + "]", iam.TokenHostNotAllowed},
		{"a host of the GovCloud on the commercial partition", host, "sts.us-gov-west-1.amazonaws.com", iam.TokenHostNotAllowed},
		{"a host of China on the commercial partition", host, "sts.cn-north-1.amazonaws.com.cn", iam.TokenHostNotAllowed},
		{"a user that looks like STS", host, host + "@attacker.example", iam.TokenHostNotAllowed},
		{"a user with a password that looks like STS", host, host + ":443@attacker.example", iam.TokenHostNotAllowed},
		{"two users", host, "a@" + host + "@attacker.example", iam.TokenHostNotAllowed},
		{"a fragment that looks like STS", host, "attacker.example#@" + host, iam.TokenHostNotAllowed},
		{"a query that looks like STS", host, "attacker.example?@" + host, iam.TokenHostNotAllowed},

		{"a user", host, "ann@" + host, iam.TokenUserInfo},
		{"a user with a password", host, "ann:hunter2@" + host, iam.TokenUserInfo},
		{"an empty user", host, "@" + host, iam.TokenUserInfo},
		{"two users before the right host", host, "a@b@" + host, iam.TokenUserInfo},
		{"a user and a port", host, "ann@" + host + ":443", iam.TokenUserInfo},

		{"another port", host, host + ":8443", iam.TokenPort},
		{"the default port", host, host + ":443", iam.TokenPort},
		{"an empty port", host, host + ":", iam.TokenPort},
		{"two ports", host, host + ":443:443", iam.TokenPort},

		{"no path", "/?", "?", iam.TokenPath},
		{"another path", "/?", "/x?", iam.TokenPath},
		{"two slashes", "/?", "//?", iam.TokenPath},
		{"a dot", "/?", "/.?", iam.TokenPath},
		{"a slash that is encoded", "/?", "/%2f?", iam.TokenPath},
		{"a path parameter", "/?", "/;x=y?", iam.TokenPath},
		{"no query, and nothing else", "/?" + goodQuery, "", iam.TokenPath},

		{"a fragment", signature, signature + "#x", iam.TokenFragment},
		{"an empty fragment", signature, signature + "#", iam.TokenFragment},
		{"all of the query in a fragment", "/?", "/#", iam.TokenFragment},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refused(t, encode(with(t, tc.piece, tc.by)), commercial(), tc.want)
		})
	}
}

func TestHostsOfAnotherPartitionAreRefused(t *testing.T) {
	gov := strings.NewReplacer(host, "sts.us-gov-west-1.amazonaws.com", "eu-west-1", "us-gov-west-1").Replace(goodURL)
	if _, err := iam.ParseToken(encode(gov), now(), government()); err != nil {
		t.Error(err)
	}
	refused(t, encode(gov), commercial(), iam.TokenHostNotAllowed)
	refused(t, encode(goodURL), government(), iam.TokenHostNotAllowed)
	refused(t, encode(strings.Replace(goodURL, host, "sts.amazonaws.com", 1)), government(), iam.TokenHostNotAllowed)
}

func TestTokenIsRefusedWithoutHosts(t *testing.T) {
	refused(t, encode(goodURL), hosts{}, iam.TokenHostNotAllowed)
	refused(t, encode(goodURL), hosts{host: nil}, iam.TokenWrongRegion)
}

func TestManyParametersAreParsed(t *testing.T) {
	text := goodURL
	for i := range 400 {
		text += "&" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "=1"
	}
	if token := encode(text); len(token) > iam.MaxToken {
		t.Fatalf("the token has %d bytes", len(token))
	}
	refused(t, encode(text), commercial(), iam.TokenParameterNotAllowed)
	refused(t, encode(text+"&Aa=1"), commercial(), iam.TokenParameterInTwoCases)
}

// TestOrderOfChecks fixes a token that fails all checks of its URL, one by one.
func TestOrderOfChecks(t *testing.T) {
	text := "http://ann@attacker.example:8443/x?%41=1" +
		"&action=&Marker=1&Marker=2&marker=3&version=2010-05-08&x-amz-algorithm=none&x-amz-expires=never&x-amz-date=today" +
		"&x-amz-credential=ASIA&x-amz-signature=0&x-amz-signedheaders=host#\x00"
	for _, step := range []struct {
		want    verdict.Code
		old, by string
	}{
		{iam.TokenNotURL, "\x00", ""},
		{iam.TokenNotHTTPS, "http:", "https:"},
		{iam.TokenHostNotAllowed, "attacker.example", host},
		{iam.TokenUserInfo, "ann@", ""},
		{iam.TokenPort, ":8443", ""},
		{iam.TokenPath, "/x?", "/?"},
		{iam.TokenFragment, "#", ""},
		{iam.TokenQueryMalformed, "%41=1&", ""},
		{iam.TokenParameterTwice, "&Marker=2", ""},
		{iam.TokenParameterInTwoCases, "&marker=3", ""},
		{iam.TokenParameterEmpty, "action=", "action=AssumeRole"},
		{iam.TokenParameterNotAllowed, "&Marker=1", ""},
		{iam.TokenWrongAction, "AssumeRole", "GetCallerIdentity"},
		{iam.TokenWrongVersion, "2010-05-08", "2011-06-15"},
		{iam.TokenWrongAlgorithm, "none", "AWS4-HMAC-SHA256"},
		{iam.TokenClusterNotSigned, "signedheaders=host", "signedheaders=host%3Bx-k8s-aws-id"},
		{iam.TokenExpiresInvalid, "never", "60"},
		{iam.TokenDateInvalid, "today", "20260301T110000Z"},
		{iam.TokenTooOld, "20260301T110000Z", "20260301T130000Z"},
		{iam.TokenFromFuture, "20260301T130000Z", "20260301T120000Z"},
		{iam.TokenCredentialMalformed, "ASIA", accessKey + "%2F20260302%2Fus-east-1%2Fsts%2Faws4_request"},
		{iam.TokenCredentialOtherDay, "20260302", "20260301"},
		{iam.TokenWrongRegion, "us-east-1", "eu-west-1"},
		{iam.TokenSignatureMalformed, "signature=0", "signature=" + signature},
	} {
		refused(t, encode(text), commercial(), step.want)
		if strings.Count(text, step.old) != 1 {
			t.Fatalf("%s: %q is not once in %s", step.want, step.old, text)
		}
		text = strings.Replace(text, step.old, step.by, 1)
	}
	if _, err := iam.ParseToken(encode(text), now(), commercial()); err != nil {
		t.Error(err)
	}
}
