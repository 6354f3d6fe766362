package instances

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"golang.org/x/time/rate"

	"github.com/node-authorizer/node-authorizer/iam"
)

// requests are those to one service, limited and counted.
type requests struct {
	service string
	limiter *rate.Limiter
	observe func(service, outcome string)
}

func newRequests(service string, o Options) *requests {
	return &requests{service, rate.NewLimiter(rate.Limit(o.PerSecond), o.Burst), o.Observe}
}

// request makes one when the limit allows it. An error that none says of what was
// asked about is an answer as well; others say what to do.
func request[A any](ctx context.Context, r *requests, none func(error) bool, ask func() (*A, error)) (*A, error) {
	if err := r.limiter.Wait(ctx); err != nil {
		r.observe(r.service, OutcomeLimited)
		return nil, &iam.Throttled{Service: r.service, Detail: "no turn within the limit on requests of this server"}
	}
	answer, err := ask()
	switch {
	case err == nil || none(err):
		r.observe(r.service, OutcomeAnswered)
		return answer, err
	case throttles(err):
		r.observe(r.service, OutcomeThrottled)
		return nil, &iam.Throttled{Service: r.service, Detail: err.Error()}
	}
	r.observe(r.service, OutcomeFailed)
	return nil, hinted(err)
}

func throttles(err error) bool {
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary
}

// hinted adds which right is missing, if one is.
func hinted(err error) error {
	var failure smithy.APIError
	if errors.As(err, &failure) {
		switch failure.ErrorCode() {
		case "UnauthorizedOperation":
			return fmt.Errorf("%w; allow ec2:DescribeInstances to the role of this server", err)
		case "AccessDenied":
			return fmt.Errorf("%w; allow iam:GetInstanceProfile to the role of this server", err)
		}
	}
	return err
}
