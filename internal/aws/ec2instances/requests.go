package ec2instances

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"golang.org/x/time/rate"
)

// The pause after the first try, doubled after each further one, and its maximum.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
)

// requests sends requests to EC2 in a region, limits and counts them.
type requests struct {
	options *Options
	region  []func(*ec2.Options)
	limit   *rateLimit
}

func newRequests(o *Options, region string) *requests {
	r := &requests{options: o, limit: newRateLimit(o.PerSecond, o.Burst)}
	if region != "" {
		r.region = []func(*ec2.Options){func(o *ec2.Options) { o.Region = region }}
	}
	return r
}

// describe returns the instances that EC2 returns. For a single instance, an empty result
// means that it does not exist.
func (r *requests) describe(ctx context.Context, ids []string, tries int) (map[string]Answer, error) {
	if len(ids) > 1 {
		// A filter omits unknown instances. A list of ids would be refused for one of them.
		return r.pages(ctx, &ec2.DescribeInstancesInput{
			Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}},
		}, tries)
	}
	found, err := r.pages(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids}, tries)
	if isUnknown(err) {
		return nil, nil
	}
	if _, named := found[ids[0]]; err == nil && !named {
		return nil, fmt.Errorf("EC2 answered a request about instance %s without it: it answered with %d instances", ids[0], len(found))
	}
	return found, err
}

// pages reads all pages of an answer.
func (r *requests) pages(ctx context.Context, input *ec2.DescribeInstancesInput, tries int) (map[string]Answer, error) {
	found := map[string]Answer{}
	for range maxPages {
		page, err := r.request(ctx, input, tries)
		if err != nil {
			return nil, err
		}
		for _, reservation := range page.Reservations {
			for n := range reservation.Instances {
				one := &reservation.Instances[n]
				found[aws.ToString(one.InstanceId)] = Answer{Instance: one, Account: aws.ToString(reservation.OwnerId)}
			}
		}
		next := aws.ToString(page.NextToken)
		switch next {
		case "":
			return found, nil
		case aws.ToString(input.NextToken):
			return nil, errors.New("EC2 repeats a page of its answer")
		}
		input.NextToken = &next
	}
	return nil, fmt.Errorf("EC2 answers with more than %d pages", maxPages)
}

// request sends a request within the rate limit, with a number of tries. After a timeout,
// it returns the error of the previous try.
func (r *requests) request(ctx context.Context, input *ec2.DescribeInstancesInput, tries int) (*ec2.DescribeInstancesOutput, error) {
	var err error
	for try := 1; ; try++ {
		if r.limit.Wait(ctx) != nil {
			if err != nil {
				return nil, r.result(err)
			}
			r.options.Observe(OutcomeLimited)
			return nil, &Throttled{Detail: "the rate limit of this server allows no request in time"}
		}
		page, latest := r.options.DescribeInstances(ctx, input, r.region...)
		throttled := isThrottling(latest)
		r.limit.adjust(latest == nil || isUnknown(latest), throttled)
		if latest == nil {
			return page, r.result(nil)
		}
		if err == nil || ctx.Err() == nil {
			err = latest
		}
		if try >= tries || !throttled && !isTransient(latest) || !pause(ctx, try) {
			return nil, r.result(err)
		}
	}
}

// result counts a request and classifies its error.
func (r *requests) result(err error) error {
	switch {
	case err == nil || isUnknown(err):
		r.options.Observe(OutcomeAnswered)
		return err
	case isThrottling(err):
		r.options.Observe(OutcomeThrottled)
		return &Throttled{Detail: err.Error()}
	}
	r.options.Observe(OutcomeFailed)
	var failure smithy.APIError
	if errors.As(err, &failure) && failure.ErrorCode() == "UnauthorizedOperation" {
		return fmt.Errorf("%w; allow ec2:DescribeInstances to the role of this server", err)
	}
	return err
}

// isUnknown reports whether an error means that the instance does not exist.
func isUnknown(err error) bool {
	var failure smithy.APIError
	if !errors.As(err, &failure) {
		return false
	}
	code := failure.ErrorCode()
	return code == "InvalidInstanceID.NotFound" || code == "InvalidInstanceID.Malformed"
}

func isThrottling(err error) bool {
	return err != nil && retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary
}

// isTransient reports whether a retry may succeed.
func isTransient(err error) bool {
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

// pause waits after a try. It returns false at once if there is not enough time.
func pause(ctx context.Context, try int) bool {
	longest := min(firstPause<<min(try-1, 10), longestPause)
	length := longest/2 + rand.N(longest/2)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= length {
		return false
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rateLimit decreases when EC2 throttles, and increases again with each answer.
type rateLimit struct {
	*rate.Limiter
	full  rate.Limit
	burst int

	mu sync.Mutex
}

func newRateLimit(perSecond float64, burst int) *rateLimit {
	return &rateLimit{Limiter: rate.NewLimiter(rate.Limit(perSecond), burst), full: rate.Limit(perSecond), burst: burst}
}

// adjust halves the rate after a throttled request, down to a sixteenth, and adds a tenth
// after an answered one. There are no bursts below the full rate.
func (l *rateLimit) adjust(answered, throttled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Limit()
	switch {
	case throttled:
		l.SetBurst(1)
		l.SetLimit(max(now/2, l.full/16))
	case answered && now < l.full:
		now = min(now+l.full/10, l.full)
		l.SetLimit(now)
		if now == l.full {
			l.SetBurst(l.burst)
		}
	}
}
