package instances

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
)

// Limits of retries of requests to IAM. They are low, because a client of the API server
// tries again when AWS throttles.
const (
	attempts       = 3
	attemptTimeout = 4 * time.Second
	maxBackoff     = 300 * time.Millisecond
)

// NewIAM returns the method of a client of IAM, with the settings and credentials of the
// environment, and the region of EC2. If the given region is empty, that is the region of
// the environment, or else of the instance that this process runs on. The transport
// carries the requests; nil means the SDK's.
func NewIAM(ctx context.Context, region string, transport http.RoundTripper) (ask GetInstanceProfile, where string, err error) {
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, maxBackoff })
		}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(attemptTimeout)),
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	} else {
		options = append(options, config.WithEC2IMDSRegion())
	}
	sdk, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, "", fmt.Errorf("reading the settings of the AWS SDK, with the region to ask EC2 in: %w", err)
	}
	if transport != nil {
		sdk.HTTPClient = &http.Client{Transport: transport, Timeout: attemptTimeout}
	}
	return awsiam.NewFromConfig(sdk).GetInstanceProfile, sdk.Region, nil
}
