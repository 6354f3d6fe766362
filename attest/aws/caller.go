package aws

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/attest/aws/identitydocument"
)

// maxCallerURL bounds the URL of a signed request; session tokens have about a
// kilobyte.
const maxCallerURL = 8 << 10

// checkCaller sends the machine's signed request to STS, and compares whose it is
// with the document. The request goes to the endpoint that the server knows, and
// consists of what the server knows: nothing else of it is taken over.
func (a *Attestor) checkCaller(ctx context.Context, document *identitydocument.Document, signed *identitydocument.CallerIdentityRequest) error {
	if signed == nil {
		return attest.Refuse(CallerIdentityMissing, "instance %s sent no signed request to STS", document.InstanceID)
	}
	endpoint := a.sts[document.Region]
	query, problem := readCallerURL(signed, endpoint)
	if problem != "" {
		return attest.Refuse(CallerIdentityInvalid, "the signed request of instance %s: %s", document.InstanceID, problem)
	}
	challenge, problem := readCallerHeader(signed.Header, endpoint.Host)
	if problem != "" {
		return attest.Refuse(CallerIdentityInvalid, "the signed request of instance %s: %s", document.InstanceID, problem)
	}
	if err := a.options.CallerIdentity.Challenger.Check(challenge); err != nil {
		return attest.Refuse(ChallengeInvalid, "the challenge that instance %s signed: %s", document.InstanceID, err)
	}
	caller, err := a.askSTS(ctx, endpoint, query, challenge)
	if err != nil {
		return err
	}
	return checkCallerIsInstance(caller, document)
}

// The query of a presigned request for GetCallerIdentity: what has to be there
// with which value, empty for any, and what may be there.
var (
	callerQuery = map[string]string{
		"Action": "GetCallerIdentity", "Version": "2011-06-15",
		"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "", "X-Amz-Date": "", "X-Amz-Signature": "",
		"X-Amz-Security-Token": "", "X-Amz-SignedHeaders": "host;" + strings.ToLower(identitydocument.ChallengeHeader),
	}
	callerQueryOptional = []string{"X-Amz-Expires"}
)

// readCallerURL returns the query of a signed request that is for the endpoint and
// for nothing but GetCallerIdentity, or what is wrong with it.
func readCallerURL(signed *identitydocument.CallerIdentityRequest, endpoint *url.URL) (query url.Values, problem string) {
	if signed.Method != http.MethodGet || signed.Body != "" {
		return nil, "it is not a GET without a body"
	}
	if len(signed.URL) > maxCallerURL {
		return nil, "its URL is too long"
	}
	u, err := url.Parse(signed.URL)
	if err != nil {
		return nil, "its URL is malformed"
	}
	if u.Scheme != endpoint.Scheme || u.Host != endpoint.Host {
		return nil, "it is for " + clip(u.Scheme+"://"+u.Host) + ", want " + endpoint.Scheme + "://" + endpoint.Host
	}
	if u.User != nil || u.Path != "" && u.Path != "/" || u.RawPath != "" || u.Opaque != "" || u.Fragment != "" {
		return nil, "its URL has more than a host and a query"
	}
	if query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, "its query is malformed"
	}
	return query, checkCallerQuery(query)
}

func checkCallerQuery(query url.Values) (problem string) {
	for _, key := range slices.Sorted(maps.Keys(query)) {
		values := query[key]
		want, known := callerQuery[key]
		switch {
		case !known && !slices.Contains(callerQueryOptional, key):
			return "its query has a parameter too many: " + clip(key)
		case len(values) != 1:
			return "its query has " + key + " twice"
		case values[0] == "" || want != "" && values[0] != want:
			return "its query has the wrong " + key + ": " + orNone(clip(values[0]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(callerQuery)) {
		if !query.Has(key) {
			return "its query lacks " + key
		}
	}
	return ""
}

// readCallerHeader returns the challenge in a header that has, beside it, nothing
// but the host.
func readCallerHeader(header map[string][]string, host string) (challenge, problem string) {
	for _, key := range slices.Sorted(maps.Keys(header)) {
		values := header[key]
		switch canonical := http.CanonicalHeaderKey(key); {
		case len(values) != 1:
			return "", "its header has not one value of " + clip(key)
		case canonical == "Host" && values[0] == host:
		case canonical == identitydocument.ChallengeHeader && challenge == "":
			challenge = values[0]
		default:
			return "", "its header has a field too many, or for another host: " + clip(key)
		}
	}
	if challenge == "" {
		return "", "its header has no " + identitydocument.ChallengeHeader
	}
	return challenge, ""
}
