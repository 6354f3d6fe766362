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
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
)

// How AWS is asked. A question that AWS turns away goes back to the API server that
// asked it, which tries again, so that there are few tries here.
const (
	attempts       = 3
	attemptTimeout = 4 * time.Second
	maxBackoff     = 300 * time.Millisecond
)

// NewClients returns clients of EC2 in a region, and of IAM, with the settings and
// credentials of the environment. The region is the environment's if it is empty, or
// else that of the instance that this process runs on. The transport carries the
// requests of the clients; nil for the SDK's.
func NewClients(ctx context.Context, region string, transport http.RoundTripper) (*ec2.Client, *awsiam.Client, error) {
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
		return nil, nil, fmt.Errorf("reading the settings of the AWS SDK, with the region to ask EC2 in: %w", err)
	}
	if transport != nil {
		sdk.HTTPClient = &http.Client{Transport: transport, Timeout: attemptTimeout}
	}
	return ec2.NewFromConfig(sdk), awsiam.NewFromConfig(sdk), nil
}
