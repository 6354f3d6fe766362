package iam

import (
	"encoding/base64"
	"strings"
	"time"
)

// The format of a token, and how long it is valid.
//
// Source: https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
const (
	// TokenPrefix begins every token. The rest is a URL in unpadded base64url.
	TokenPrefix = "k8s-aws-v1."
	// ClusterHeader is the header with the id of the cluster that the token is for. The
	// header is signed but not in the token: the server that sends the request adds its
	// own cluster id.
	ClusterHeader = "x-k8s-aws-id"
	// MaxToken is the maximum size of a token in bytes.
	MaxToken = 4096
	// TokenLife is how long STS accepts a signed request.
	TokenLife = 15 * time.Minute
	// MaxSkew is how far the signer's clock may be ahead of the server's.
	MaxSkew = 5 * time.Minute
)

// Hosts are the hosts of STS that receive requests. It is safe for concurrent use.
type Hosts interface {
	// Host returns the regions for which requests to a host may be signed; ok is false for
	// a host that is not among these. Names are compared exactly: they are in lower case,
	// without a trailing dot.
	Host(host string) (regions []string, ok bool)
}

// Request is the request to STS in a token: GetCallerIdentity, and nothing else.
type Request struct {
	// Host is one of [Hosts].
	Host string
	// Region is the region that the request is signed for.
	Region string
	// AccessKeyID is the id of the access key that signed. It is no secret, and it is not
	// verified until STS has answered.
	AccessKeyID string
	// RawQuery has the parameters in the order of the token, encoded again. It contains
	// the signature: do not log it.
	RawQuery string
	// SignedAt is the time in the signature.
	SignedAt time.Time
	// NotAfter is when the signature expires: [TokenLife] after SignedAt. STS ignores
	// X-Amz-Expires, and clients set it to 60 seconds for a token that they use for 14
	// minutes.
	NotAfter time.Time
}

// URL returns the URL of the request. It is built from the checked parts, not copied from
// the token. It is as secret as the token.
func (r *Request) URL() string { return "https://" + r.Host + "/?" + r.RawQuery }

// ParseToken reads a token and makes all checks that need no request. The error is a
// [*Refusal], with one code for each check. It quotes no secret.
func ParseToken(token string, now time.Time, hosts Hosts) (*Request, error) {
	request, refusal := readToken(token, now, hosts)
	if refusal != nil {
		return nil, refusal
	}
	return request, nil
}

func readToken(token string, now time.Time, hosts Hosts) (*Request, *Refusal) {
	text, refusal := decodeToken(token)
	if refusal != nil {
		return nil, refusal
	}
	address, refusal := readURL(text, hosts)
	if refusal != nil {
		return nil, refusal
	}
	query, refusal := readQuery(address.query)
	if refusal != nil {
		return nil, refusal
	}
	return makeRequest(query, address, now)
}

// decodeToken returns the text in a token. Base64 decoders accept several texts for the
// same bytes, with line breaks, padding or trailing bits. Only the canonical one is
// accepted, so that each token has one form.
func decodeToken(token string) (string, *Refusal) {
	if len(token) > MaxToken {
		return "", Refuse(TokenTooLong, "the token has %d bytes, the maximum is %d", len(token), MaxToken)
	}
	encoded, ok := strings.CutPrefix(token, TokenPrefix)
	if !ok {
		return "", Refuse(TokenPrefixMissing, "the token does not begin with %q", TokenPrefix)
	}
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || base64.RawURLEncoding.EncodeToString(decoded) != encoded {
		return "", Refuse(TokenEncodingWrong, "the text after %q is not base64url without padding", TokenPrefix)
	}
	return string(decoded), nil
}
