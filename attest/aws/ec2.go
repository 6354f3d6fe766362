package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/node-authorizer/node-authorizer/attest"
)

// How EC2 is asked. The attempts are also limited by the deadline of the request
// that they are for, and all together by the adaptive mode, which slows down when
// EC2 throttles.
const (
	ec2Attempts       = 8
	ec2AttemptTimeout = 5 * time.Second
	ec2MaxBackoff     = 3 * time.Second
)

// newEC2 returns a client of EC2 with the settings of the environment.
func newEC2(ctx context.Context) (*ec2.Client, error) {
	retryer := retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
		o.StandardOptions = append(o.StandardOptions, func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = ec2Attempts, ec2MaxBackoff
		})
	})
	sdk, err := config.LoadDefaultConfig(ctx,
		config.WithRetryer(func() aws.Retryer { return retryer }),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(ec2AttemptTimeout)))
	if err != nil {
		return nil, fmt.Errorf("reading the settings of the AWS SDK: %w", err)
	}
	return ec2.NewFromConfig(sdk), nil
}

// lookUp asks EC2 about an instance, together with others that are asked about at
// the same time. If there is none, the error is a refusal.
func (a *Attestor) lookUp(ctx context.Context, region, id string) (*instance, error) {
	found, err := a.crowds.ask(ctx, region, id)
	if err == nil && found == nil {
		// Asked by its id alone, EC2 says it if it does not know an instance.
		found, err = describeOne(ctx, a.options.EC2, region, id)
	}
	if err != nil {
		return nil, ec2Failure(err, region, id)
	}
	return found, nil
}

// describeOne asks about one instance. That EC2 does not know it is an error of
// EC2's own, so that an answer without it is one that was cut off.
func describeOne(ctx context.Context, api EC2API, region, id string) (*instance, error) {
	found, err := describe(ctx, api, region, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[id] == nil {
		return nil, fmt.Errorf("it answered with %d instances, not with that one", len(found))
	}
	return found[id], nil
}

// describeMany asks about instances by a filter, which leaves out those that EC2
// does not know.
func describeMany(ctx context.Context, api EC2API, region string, ids []string) (map[string]*instance, error) {
	return describe(ctx, api, region, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}},
	})
}

// describe goes through all pages of an answer.
func describe(ctx context.Context, api EC2API, region string, input *ec2.DescribeInstancesInput) (map[string]*instance, error) {
	pages := ec2.NewDescribeInstancesPaginator(api, input,
		func(o *ec2.DescribeInstancesPaginatorOptions) { o.StopOnDuplicateToken = true })
	found := map[string]*instance{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, func(o *ec2.Options) { o.Region = region })
		if err != nil {
			return nil, err
		}
		for _, reservation := range page.Reservations {
			for i := range reservation.Instances {
				one := readInstance(&reservation.Instances[i], aws.ToString(reservation.OwnerId), region)
				found[one.id] = one
			}
		}
	}
	return found, nil
}

// ec2Failure tells an instance that is not there from everything else.
func ec2Failure(err error, region, id string) error {
	var failure smithy.APIError
	hint := ""
	if errors.As(err, &failure) {
		switch failure.ErrorCode() {
		case "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed":
			return attest.Refuse(InstanceNotFound, "EC2 knows no instance %s in %s that this account may see", id, region)
		case "UnauthorizedOperation":
			hint = "; allow ec2:DescribeInstances to the role of this server"
		}
	}
	return fmt.Errorf("asking EC2 in %s about instance %s: %w%s", region, id, err, hint)
}

func isNotFound(err error) bool {
	var refusal *attest.Refusal
	return errors.As(err, &refusal) && refusal.Code == InstanceNotFound
}
