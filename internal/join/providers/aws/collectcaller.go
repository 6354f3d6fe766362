package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// callerIdentity signs a GetCallerIdentity request with the instance's own role, and does
// not send it. The challenge is signed, so that the request is valid only for this server
// and for a short time.
func (c *Collector) callerIdentity(ctx context.Context, challenge string) (*identitydocument.CallerIdentityRequest, error) {
	region, err := c.metadata.GetRegion(ctx, &imds.GetRegionInput{})
	if err != nil {
		return nil, unanswered("the region", err)
	}
	sdk := c.sdk.Copy()
	sdk.Region = region.Region
	// Only the instance's own credentials identify the instance, not those in the
	// environment.
	sdk.Credentials = aws.NewCredentialsCache(ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = c.metadata }))
	presigned, err := sts.NewPresignClient(sts.NewFromConfig(sdk)).PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{},
		func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions,
				sts.WithAPIOptions(smithyhttp.SetHeaderValue(identitydocument.ChallengeHeader, challenge)))
		})
	if err != nil {
		return nil, fmt.Errorf("sign a request for the identity of the instance's role: %w; the instance needs an instance profile", err)
	}
	return &identitydocument.CallerIdentityRequest{URL: presigned.URL, Method: presigned.Method, Header: presigned.SignedHeader}, nil
}
