package fakeaws

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Credentials are the credentials that sign requests.
type Credentials struct {
	AccessKeyID, SecretAccessKey string
	// Token is the session token of temporary credentials. It is empty for a user.
	Token      string
	Expiration time.Time
}

// principal is the owner of credentials.
type principal struct {
	Credentials
	account, arn, userID string
}

// refusal is an error answer of a service.
type refusal struct {
	status        int
	code, message string
}

const (
	base32Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	base64Digits = base32Digits + "abcdefghijklmnopqrstuvwxyz0189+/"
)

func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// authorization has the parts of Signature Version 4 of a request, from its Authorization
// header or, if it was presigned, from its query.
type authorization struct {
	accessKeyID, region, service string
	token                        string
	signedAt                     string // as in X-Amz-Date
	signedHeaders                []string
	signature                    string
}

// authenticate verifies a request's signature and returns its signer and region.
func (c *Cloud) authenticate(r *http.Request, service string) (principal, string, *refusal) {
	auth, ok := readAuthorization(r)
	if !ok {
		return principal{}, "", &refusal{403, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	c.mu.Lock()
	who, known := c.principals[auth.accessKeyID]
	c.mu.Unlock()
	if !known || auth.token != who.Token {
		return principal{}, "", &refusal{403, "InvalidClientTokenId", "The security token included in the request is invalid"}
	}
	now := time.Now()
	signed, err := time.Parse("20060102T150405Z", auth.signedAt)
	if err != nil || now.Sub(signed).Abs() > lifetime {
		return principal{}, "", &refusal{403, "SignatureDoesNotMatch", "Signature expired or not yet current"}
	}
	if now.After(who.Expiration) {
		return principal{}, "", &refusal{403, "ExpiredToken", "The security token included in the request is expired"}
	}
	if auth.service != service || !signsEnough(r, auth.signedHeaders) {
		return principal{}, "", &refusal{403, "SignatureDoesNotMatch", "Credential or SignedHeaders not as they should be"}
	}
	want, err := auth.sign(r, who.SecretAccessKey)
	if err != nil || !hmac.Equal([]byte(want), []byte(auth.signature)) {
		return principal{}, "", &refusal{
			403, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access " +
				"Key and signing method.",
		}
	}
	return who, auth.region, nil
}

// lifetime is how long a signature is valid, regardless of X-Amz-Expires, and the maximum
// clock skew between a caller and AWS.
const lifetime = 15 * time.Minute

func readAuthorization(r *http.Request) (authorization, bool) {
	query := r.URL.Query()
	if query.Get("X-Amz-Algorithm") != algorithm {
		return parseAuthorization(r.Header)
	}
	a := authorization{
		token: query.Get("X-Amz-Security-Token"), signedAt: query.Get("X-Amz-Date"),
		signedHeaders: strings.Split(query.Get("X-Amz-SignedHeaders"), ";"),
		signature:     query.Get("X-Amz-Signature"),
	}
	return a, a.setScope(query.Get("X-Amz-Credential"))
}

const algorithm = "AWS4-HMAC-SHA256"

// parseAuthorization reads "AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX".
func parseAuthorization(header http.Header) (authorization, bool) {
	parameters, ok := strings.CutPrefix(header.Get("Authorization"), algorithm+" ")
	if !ok {
		return authorization{}, false
	}
	values := map[string]string{}
	for _, parameter := range strings.Split(parameters, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		values[key] = value
	}
	a := authorization{
		token: header.Get("X-Amz-Security-Token"), signedAt: header.Get("X-Amz-Date"),
		signedHeaders: strings.Split(values["SignedHeaders"], ";"), signature: values["Signature"],
	}
	return a, a.setScope(values["Credential"])
}

// setScope reads ID/DATE/REGION/SERVICE/aws4_request.
func (a *authorization) setScope(credential string) bool {
	scope := strings.Split(credential, "/")
	if len(scope) != 5 || scope[4] != "aws4_request" || !strings.HasPrefix(a.signedAt, scope[1]+"T") {
		return false
	}
	a.accessKeyID, a.region, a.service = scope[0], scope[2], scope[3]
	return true
}

// signsEnough reports whether the host and all headers of AWS are signed.
func signsEnough(r *http.Request, signed []string) bool {
	if !slices.IsSorted(signed) || !slices.Contains(signed, "host") {
		return false
	}
	for name := range r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) {
			return false
		}
	}
	return true
}

// sign returns the correct signature of the request (AWS's page "Create a signed AWS API
// request").
func (a authorization) sign(r *http.Request, secret string) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	canonical := strings.Join([]string{
		r.Method, canonicalPath(r.URL), canonicalQuery(r.URL), canonicalHeaders(r, a.signedHeaders),
		strings.Join(a.signedHeaders, ";"), hexSHA256(body),
	}, "\n")
	date, _, _ := strings.Cut(a.signedAt, "T")
	scope := strings.Join([]string{date, a.region, a.service, "aws4_request"}, "/")
	text := strings.Join([]string{algorithm, a.signedAt, scope, hexSHA256([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{date, a.region, a.service, "aws4_request", text} {
		key = hmacSHA256(key, part)
	}
	return hex.EncodeToString(key), nil
}

func canonicalPath(u *url.URL) string {
	if u.EscapedPath() == "" {
		return "/"
	}
	return u.EscapedPath()
}

// canonicalQuery returns the sorted query without the signature.
func canonicalQuery(u *url.URL) string {
	query := u.Query()
	query.Del("X-Amz-Signature")
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// canonicalHeaders returns a line for each signed header.
func canonicalHeaders(r *http.Request, signed []string) string {
	var b strings.Builder
	for _, name := range signed {
		values := r.Header.Values(name)
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		}
		folded := make([]string, len(values))
		for i, value := range values {
			folded[i] = strings.Join(strings.Fields(value), " ")
		}
		fmt.Fprintf(&b, "%s:%s\n", name, strings.Join(folded, ","))
	}
	return b.String()
}

func hexSHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
