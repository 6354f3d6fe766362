package aws

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/aws/presigned"
)

// maxCallerURL bounds the URL of a signed request. Session tokens have about a kilobyte.
const maxCallerURL = 8 << 10

// checkCaller sends the machine's signed request to STS, and compares the caller with the
// document. The request goes to the configured endpoint and is built from checked parts
// only.
func (a *Attestor) checkCaller(ctx context.Context, document *identitydocument.Document,
	signed *identitydocument.CallerIdentityRequest,
) error {
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
		return attest.Refuse(attest.ChallengeInvalid, "the challenge that instance %s signed: %s", document.InstanceID, err)
	}
	caller, err := a.askSTS(ctx, endpoint, query, challenge)
	if err != nil {
		return err
	}
	return checkCallerIsInstance(caller, document)
}

// callerRules are the rules for the query of a signed request. The AWS SDK makes it and
// signs it with the credentials of a role, which have a security token.
func callerRules() presigned.Rules {
	return presigned.Rules{
		Required: []string{
			presigned.Action, presigned.Version, presigned.Algorithm, presigned.Credential, presigned.Date, presigned.SecurityToken,
			presigned.Signature, presigned.SignedHeaders,
		},
		Optional: []string{presigned.Expires}, Exact: true,
	}
}

// callerSignedHeaders are the signed headers: the host and the challenge.
var callerSignedHeaders = "host;" + strings.ToLower(identitydocument.ChallengeHeader)

// readCallerURL returns the query of a signed request, or what is wrong with it. It must
// be GetCallerIdentity for the endpoint.
func readCallerURL(signed *identitydocument.CallerIdentityRequest, endpoint *url.URL) (query presigned.Query, problem string) {
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
	query, wrong := presigned.Parse(u.RawQuery, callerRules())
	if wrong == nil {
		wrong = cmp.Or(query.CheckCall(), query.CheckValue(presigned.SignedHeaders, callerSignedHeaders))
	}
	return query, queryProblem(wrong)
}

// queryProblem returns what is wrong with a query, or an empty text.
func queryProblem(p *presigned.Problem) string {
	if p == nil {
		return ""
	}
	switch p.Kind {
	case presigned.Twice:
		return "its query has " + clip(p.Name) + " twice"
	case presigned.InTwoCases, presigned.NotAllowed:
		return "its query has an unknown parameter: " + clip(p.Name)
	case presigned.Empty, presigned.WrongValue:
		return "its query has the wrong " + clip(p.Name) + ": " + orNone(clip(p.Value))
	case presigned.Missing:
		return "its query lacks " + p.Name
	}
	return "its query is malformed"
}

// readCallerHeader returns the challenge in a header that has only the challenge and the
// host.
func readCallerHeader(header map[string][]string, host string) (challenge, problem string) {
	for _, key := range slices.Sorted(maps.Keys(header)) {
		values := header[key]
		switch canonical := http.CanonicalHeaderKey(key); {
		case len(values) != 1:
			return "", "its header does not have exactly one value of " + clip(key)
		case canonical == "Host" && values[0] == host:
		case canonical == identitydocument.ChallengeHeader && challenge == "":
			challenge = values[0]
		default:
			return "", "its header has an unknown field, or another host: " + clip(key)
		}
	}
	if challenge == "" {
		return "", "its header has no " + identitydocument.ChallengeHeader
	}
	return challenge, ""
}
