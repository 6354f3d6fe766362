package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/calleridentity"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/aws/presigned"
)

// stsTimeout bounds one request to STS.
const stsTimeout = 10 * time.Second

// stsEndpoints returns the endpoint of STS for each region. The SDK has the public
// endpoints of all partitions.
func stsEndpoints(ctx context.Context, options Options) (map[string]*url.URL, error) {
	endpoints := map[string]*url.URL{}
	for _, region := range options.Regions {
		text := options.CallerIdentity.Endpoint
		if text == "" {
			public, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{Region: aws.String(region)})
			if err != nil {
				return nil, fmt.Errorf("find the endpoint of STS in %s: %w", region, err)
			}
			text = public.URI.String()
		}
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		endpoints[region] = endpoint
	}
	return endpoints, nil
}

// askSTS sends a GetCallerIdentity request that the machine has signed. If STS rejects
// its signature, that is a refusal.
func (a *Attestor) askSTS(ctx context.Context, endpoint *url.URL, query presigned.Query,
	challenge string,
) (*calleridentity.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, stsTimeout)
	defer cancel()
	target := *endpoint
	target.RawQuery = query.Encode()
	header := http.Header{}
	header.Set(identitydocument.ChallengeHeader, challenge)
	status, answer, err := calleridentity.Send(ctx, a.transport, &target, header)
	if err != nil {
		return nil, fmt.Errorf("verify the signed request with STS at %s: %w", endpoint.Host, err)
	}
	return readCaller(status, answer, endpoint.Host)
}

func readCaller(status int, answer []byte, host string) (*calleridentity.Identity, error) {
	who, err := calleridentity.Read(status, answer)
	if refused, ok := errors.AsType[*calleridentity.Refused](err); ok {
		return nil, attest.Refuse(CallerIdentityInvalid, "%s", refused)
	}
	if mismatch, ok := errors.AsType[*calleridentity.Mismatch](err); ok {
		return nil, attest.Refuse(CallerIdentityInvalid, "STS returned %s with the account %s", clip(mismatch.ARN), mismatch.Account)
	}
	if err != nil {
		return nil, fmt.Errorf("verify the signed request with STS at %s: %w", host, err)
	}
	return who, nil
}

// checkCallerIsInstance compares the caller with a document: the session of an instance's
// role is named after the instance
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html).
func checkCallerIsInstance(who *calleridentity.Identity, document *identitydocument.Document) error {
	if who.Account != document.AccountID {
		return attest.Refuse(CallerIdentityInvalid, "instance %s is in account %s, its credentials are of %s", document.InstanceID,
			document.AccountID, who.Account)
	}
	if _, session, err := iam.Canonical(who.ARN); err != nil || session != document.InstanceID {
		return attest.Refuse(CallerIdentityInvalid, "the credentials of instance %s belong to %s, not to its own role",
			document.InstanceID, clip(who.ARN))
	}
	return nil
}
