package aws

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/attest/aws/identitydocument"
)

// stsTimeout bounds one request to STS, and maxCallerAnswer what is read of the
// answer.
const (
	stsTimeout      = 10 * time.Second
	maxCallerAnswer = 64 << 10
)

// newSTSClient returns a client that follows no redirects.
func newSTSClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &http.Client{
		Transport: transport, Timeout: stsTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// stsEndpoints returns where STS is for each region. The SDK knows the public
// endpoints of all partitions.
func stsEndpoints(ctx context.Context, options Options) (map[string]*url.URL, error) {
	endpoints := map[string]*url.URL{}
	for _, region := range options.Regions {
		text := options.CallerIdentity.Endpoint
		if text == "" {
			public, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{Region: aws.String(region)})
			if err != nil {
				return nil, fmt.Errorf("finding the endpoint of STS in %s: %w", region, err)
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

// caller is who signed a request, as STS says.
type caller struct {
	ARN     string `xml:"GetCallerIdentityResult>Arn"`
	Account string `xml:"GetCallerIdentityResult>Account"`
}

// askSTS sends a request for GetCallerIdentity that the machine has signed. That
// STS takes it for forged or outdated is a refusal.
func (a *Attestor) askSTS(ctx context.Context, endpoint *url.URL, query url.Values, challenge string) (*caller, error) {
	target := *endpoint
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking STS at %s whose request it is: the request cannot be made", endpoint.Host)
	}
	req.Header.Set(identitydocument.ChallengeHeader, challenge)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking STS at %s whose request it is: %w", endpoint.Host, withoutURL(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxCallerAnswer))
	if err != nil {
		return nil, fmt.Errorf("asking STS at %s whose request it is: reading the answer: %w", endpoint.Host, err)
	}
	return readCaller(resp.StatusCode, answer, endpoint.Host)
}

// withoutURL takes the URL, with the machine's signature in it, out of an error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func readCaller(status int, answer []byte, host string) (*caller, error) {
	if status == http.StatusOK {
		var who caller
		if err := xml.Unmarshal(answer, &who); err != nil || who.ARN == "" || who.Account == "" {
			return nil, fmt.Errorf("asking STS at %s whose request it is: the answer is not that of GetCallerIdentity", host)
		}
		return &who, nil
	}
	var failure struct {
		Code string `xml:"Error>Code"`
	}
	err := xml.Unmarshal(answer, &failure)
	_, throttling := retry.DefaultThrottleErrorCodes[failure.Code]
	if err != nil || failure.Code == "" || status < 400 || status >= 500 || throttling {
		return nil, fmt.Errorf("asking STS at %s whose request it is: it answered with status %d, %s", host, status, orNone(clip(failure.Code)))
	}
	return nil, attest.Refuse(CallerIdentityInvalid, "STS does not take the signed request: %s", clip(failure.Code))
}

// checkInstance compares the caller with a document: the session of an instance's
// role has the id of the instance for its name
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html).
func (c *caller) checkInstance(document *identitydocument.Document) error {
	if c.Account != document.AccountID {
		return attest.Refuse(CallerIdentityInvalid, "instance %s is of account %s, its credentials are of %s", document.InstanceID, document.AccountID, clip(c.Account))
	}
	// arn:PARTITION:sts::ACCOUNT:assumed-role/ROLE/SESSION
	parts := strings.SplitN(c.ARN, ":", 6)
	if len(parts) == 6 && parts[0] == "arn" && parts[2] == "sts" && parts[4] == document.AccountID {
		session := strings.Split(parts[5], "/")
		if len(session) == 3 && session[0] == "assumed-role" && session[2] == document.InstanceID {
			return nil
		}
	}
	return attest.Refuse(CallerIdentityInvalid, "the credentials of instance %s are those of %s, not of its own role", document.InstanceID, clip(c.ARN))
}
