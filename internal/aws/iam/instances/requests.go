package instances

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// request sends a request to IAM within the rate limit. The error for a missing profile
// is an answer; errors of permissions say what to do.
func (p *profiles) request(ctx context.Context, input *awsiam.GetInstanceProfileInput) (*awsiam.GetInstanceProfileOutput, error) {
	observe := p.options.Observe
	if err := p.limiter.Wait(ctx); err != nil {
		observe(ec2instances.OutcomeLimited)
		return nil, &iam.Throttled{Service: serviceIAM, Detail: "the rate limit of this server allows no request in time"}
	}
	answer, err := p.options.IAM(ctx, input)
	switch {
	case err == nil || unknownProfile(err):
		observe(ec2instances.OutcomeAnswered)
		return answer, err
	case retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary:
		observe(ec2instances.OutcomeThrottled)
		return nil, &iam.Throttled{Service: serviceIAM, Detail: err.Error()}
	}
	observe(ec2instances.OutcomeFailed)
	var failure smithy.APIError
	if errors.As(err, &failure) && failure.ErrorCode() == "AccessDenied" {
		return nil, fmt.Errorf("%w; allow iam:GetInstanceProfile to the role of this server", err)
	}
	return nil, err
}
