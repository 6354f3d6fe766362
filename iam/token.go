package iam

import (
	"encoding/base64"
	"strings"
	"time"
)

// What a token consists of, and how long it is good.
//
// Source: https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
const (
	// TokenPrefix begins every token. The rest is a URL in unpadded base64url.
	TokenPrefix = "k8s-aws-v1."
	// ClusterHeader is the header with the id of the cluster that the token is for. It
	// is not in the token: it is signed, and whoever sends the request adds its own id.
	ClusterHeader = "x-k8s-aws-id"
	// MaxToken is the size up to which tokens are read, in bytes.
	MaxToken = 4096
	// TokenLife is how long STS takes a signed request.
	TokenLife = 15 * time.Minute
	// MaxSkew is how far ahead of ours the clock of who signs may be.
	MaxSkew = 5 * time.Minute
)

// Hosts are those of STS to which requests are sent. It is safe for concurrent use.
type Hosts interface {
	// Host returns the regions for which requests to a host may be signed. It is not
	// ok for a host that is not asked. Names are compared as they are: in lower case,
	// without a final dot.
	Host(host string) (regions []string, ok bool)
}

// Request is what a token asks of STS: GetCallerIdentity, and nothing else.
type Request struct {
	// Host is one of those that are asked.
	Host string
	// Region is the one that the request is signed for.
	Region string
	// AccessKeyID is the id of the credentials that sign. It is no secret, and nobody
	// has checked it before STS has answered.
	AccessKeyID string
	// RawQuery has the parameters in the order of the token, encoded anew. It has the
	// signature: it is not for logs.
	RawQuery string
	// SignedAt is the time that the signature is made for.
	SignedAt time.Time
	// NotAfter is when STS no longer takes the signature: [TokenLife] after SignedAt.
	// STS leaves X-Amz-Expires aside, and clients write 60 seconds there for a token
	// that they use for 14 minutes.
	NotAfter time.Time
}

// URL is where the request goes. It is made of what has been checked, not copied from
// the token. It is as secret as the token.
func (r *Request) URL() string { return "https://" + r.Host + "/?" + r.RawQuery }

// ParseToken reads a token and checks everything that can be checked without asking
// anybody. The error is a [*Refusal], with a code of its own for each check; it quotes
// nothing that is secret.
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

// decodeToken returns the text in a token. Of all texts that decoders take for the
// same bytes, with line breaks, padding or spare bits, it takes one: a token is then
// written in one way only.
func decodeToken(token string) (string, *Refusal) {
	if len(token) > MaxToken {
		return "", Refuse(TokenTooLong, "the token has %d bytes, and more than %d are not read", len(token), MaxToken)
	}
	encoded, ok := strings.CutPrefix(token, TokenPrefix)
	if !ok {
		return "", Refuse(TokenPrefixMissing, "the token does not begin with %q", TokenPrefix)
	}
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || base64.RawURLEncoding.EncodeToString(decoded) != encoded {
		return "", Refuse(TokenEncodingWrong, "what follows %q is not base64url without padding", TokenPrefix)
	}
	return string(decoded), nil
}
