package aws

import (
	"net/url"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// ReadCallerRequest reads a signed request for an endpoint, and says what is wrong
// with it.
func ReadCallerRequest(signed *identitydocument.CallerIdentityRequest, endpoint *url.URL) (query url.Values, challenge, problem string) {
	parsed, problem := readCallerURL(signed, endpoint)
	if problem != "" {
		return nil, "", problem
	}
	if query, err := url.ParseQuery(parsed.Encode()); err == nil {
		challenge, problem = readCallerHeader(signed.Header, endpoint.Host)
		return query, challenge, problem
	}
	return nil, "", "what is sent is malformed"
}

// ReadCaller reads an answer of STS.
func ReadCaller(status int, answer []byte) (arn, account string, err error) {
	who, err := readCaller(status, answer, "sts.example.com")
	if err != nil {
		return "", "", err
	}
	return who.ARN, who.Account, nil
}
