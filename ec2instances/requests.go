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

// The pause after the first try, doubled after each further one, and the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
)

// requests are those to EC2 in a region, limited and counted.
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

// describe returns those of some instances that EC2 names. Of one instance it returns
// nothing only if EC2 says that it has none.
func (r *requests) describe(ctx context.Context, ids []string, tries int) (map[string]Answer, error) {
	if len(ids) > 1 {
		// A filter leaves out what EC2 does not know. A list of ids would be refused for
		// one of them.
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

// pages goes through all pages of an answer.
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

// request makes one when the rate limit allows it, up to a number of tries. When the time
// is over, the error of the try before says more than that.
func (r *requests) request(ctx context.Context, input *ec2.DescribeInstancesInput, tries int) (*ec2.DescribeInstancesOutput, error) {
	var err error
	for try := 1; ; try++ {
		if r.limit.Wait(ctx) != nil {
			if err != nil {
				return nil, r.result(err)
			}
			r.options.Observe(OutcomeLimited)
			return nil, &Throttled{Detail: "the rate limit of this server leaves no time for a request"}
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
		if try >= tries || !throttled && !isPassing(latest) || !pause(ctx, try) {
			return nil, r.result(err)
		}
	}
}

// result counts a request and returns what its error means.
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

// isUnknown reports whether EC2 says that it has no such instance.
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

// isPassing reports whether an error may be gone with the next try.
func isPassing(err error) bool {
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

// pause waits after a try. It returns false at once if the time does not suffice.
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

// rateLimit falls when EC2 throttles, and rises again with each answer.
type rateLimit struct {
	*rate.Limiter
	full  rate.Limit
	burst int

	mu sync.Mutex
}

func newRateLimit(perSecond float64, burst int) *rateLimit {
	return &rateLimit{Limiter: rate.NewLimiter(rate.Limit(perSecond), burst), full: rate.Limit(perSecond), burst: burst}
}

// adjust halves the rate for a request that was throttled, down to a sixteenth, and gives
// a tenth back for one that was answered. There are no bursts below the full rate.
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
