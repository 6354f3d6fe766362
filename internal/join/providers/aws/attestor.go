// Package aws is the provider for virtual machines of Amazon EC2.
//
// A machine's evidence is its instance identity document, which AWS signs. It has the
// instance, its account and region, and the time of its start. It does not identify the
// sender: the server cannot put a nonce into it, it is the same until the instance is
// stopped, and every process on the machine can read it. So the server also asks EC2
// whether the instance runs, in which VPC, with which tags, and whether the request came
// from one of its addresses. In addition, a machine can be required to prove that it has
// the credentials of its instance's role: it signs a request to STS with a challenge of
// the server, and the server sends it.
//
// The [Collector] is the machine's half, the [Attestor] the server's.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// Name is the name of the provider.
const Name = "aws"

// Attestor is the server's half of the provider.
type Attestor struct {
	options  Options
	verifier *identitydocument.Verifier
	name     namingRule
	sts      map[string]*url.URL // the endpoint of each region
	// transport carries requests to STS.
	transport http.RoundTripper
}

var (
	_ attest.Attestor = (*Attestor)(nil)
	_ attest.Presence = (*Attestor)(nil)
)

// New returns an attestor. It gets missing options from the metadata service of the
// server's own machine.
func New(ctx context.Context, options Options) (*Attestor, error) {
	options, err := options.complete(ctx)
	if err != nil {
		return nil, err
	}
	rule, err := parseNaming(options.Naming)
	if err != nil {
		return nil, err
	}
	endpoints, err := stsEndpoints(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.EC2 == nil {
		if options.EC2, err = ec2instances.Load(ctx, ec2instances.Options{}, nil); err != nil {
			return nil, err
		}
	}
	if options.HTTP == nil {
		options.HTTP = http.DefaultTransport
	}
	return &Attestor{
		options: options, verifier: identitydocument.NewVerifier(options.Certificates), name: rule,
		sts: endpoints, transport: options.HTTP,
	}, nil
}

// Name returns "aws".
func (a *Attestor) Name() string { return Name }

// Attest verifies the signed document, then the instance's account and region, its
// description in EC2, the source address, and, if required, the credentials of the
// machine. Missing answers of EC2 or STS are errors, never refusals.
func (a *Attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	evidence, err := identitydocument.ParseEvidence(req.Body)
	if err != nil {
		return nil, err
	}
	document, err := a.read(evidence)
	if err != nil {
		return nil, err
	}
	if refusal := a.checkPlace(document); refusal != nil {
		return nil, refusal
	}
	found, err := a.lookUp(ctx, document.Region, document.InstanceID)
	if err != nil {
		return nil, err
	}
	if refusal := a.checkInstance(document, found, req.RemoteAddr); refusal != nil {
		return nil, refusal
	}
	if a.options.CallerIdentity.Required {
		if err := a.checkCaller(ctx, document, evidence.CallerIdentity); err != nil {
			return nil, err
		}
	}
	return a.identify(document, found), nil
}

// read returns the document of evidence. It is verified unless the options disable that.
func (a *Attestor) read(evidence *identitydocument.Evidence) (*identitydocument.Document, error) {
	if a.options.SkipSignature {
		return identitydocument.Unverified(evidence)
	}
	return a.verifier.Verify(evidence)
}

func (a *Attestor) identify(document *identitydocument.Document, found *instance) *attest.Identity {
	name := a.name(found.nameFields(a.options.ClusterName))
	return &attest.Identity{
		Provider: Name, InstanceID: document.InstanceID, NodeName: name,
		Names: found.servingNames(name), Addresses: found.private,
		Account: document.AccountID, Region: document.Region, Zone: document.AvailabilityZone,
		ProviderID: "aws:///" + document.AvailabilityZone + "/" + document.InstanceID,
		Digest:     document.Digest, Issued: document.PendingTime,
	}
}

// Gone reports whether an instance has been terminated. EC2 returns a terminated instance
// for about an hour, and then none. It is looked up in the region where it was attested,
// which may not be configured any more, and in the configured ones.
func (a *Attestor) Gone(ctx context.Context, instanceID, region string) (bool, error) {
	if !instanceForm.MatchString(instanceID) {
		return false, fmt.Errorf("look up instance %q in EC2: that is not the id of an instance", clip(instanceID))
	}
	regions := a.options.Regions
	if !slices.Contains(regions, region) {
		regions = append([]string{region}, regions...)
	}
	for _, region := range regions {
		found, err := a.lookUp(ctx, region, instanceID)
		refusal, _ := errors.AsType[*attest.Refusal](err)
		switch {
		case refusal != nil && refusal.Code == InstanceNotFound:
		case err != nil:
			return false, err
		case !found.ended():
			return false, nil
		}
	}
	return true, nil
}

// clip shortens untrusted text.
func clip(text string) string {
	const limit = 64
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
