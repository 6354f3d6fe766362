package ec2instances_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

var (
	errThrottled = &smithy.GenericAPIError{Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	errUnknown   = &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound"}
	errForbidden = &smithy.GenericAPIError{Code: "UnauthorizedOperation"}
	errInternal  = &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}
)

func TestTries(t *testing.T) {
	for _, test := range []struct {
		name      string
		errs      []error // the errors of the first tries
		tries     int
		want      string // a part of the error
		requests  int
		throttled bool
		outcome   string
	}{
		{"an answer", nil, 3, "", 1, false, ec2instances.OutcomeAnswered},
		{"throttled once", []error{errThrottled}, 3, "", 2, false, ec2instances.OutcomeAnswered},
		{
			"throttled at each try",
			[]error{errThrottled, errThrottled, errThrottled},
			3, "RequestLimitExceeded", 3, true,
			ec2instances.OutcomeThrottled,
		},
		{"one try", []error{errThrottled}, 1, "RequestLimitExceeded", 1, true, ec2instances.OutcomeThrottled},
		{
			"throttled, then failed",
			[]error{errThrottled, errInternal, errInternal},
			3, "InternalError", 2, false,
			ec2instances.OutcomeFailed,
		},
		{
			"not allowed",
			[]error{errForbidden},
			3, "allow ec2:DescribeInstances to the role of this server", 1, false,
			ec2instances.OutcomeFailed,
		},
		{"not known", []error{errUnknown}, 3, "", 1, false, ec2instances.OutcomeAnswered},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				var outcomes []string
				of := ec2instances.New(ec2instances.Options{
					DescribeInstances: stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput, error) {
						requests++
						if requests <= len(test.errs) {
							return nil, test.errs[requests-1]
						}
						return answerWith(ids...), nil
					}).describe,
					Observe: func(outcome string) { outcomes = append(outcomes, outcome) },
				})
				answer, err := of.Instance(t.Context(), region, "i-0000000a", test.tries)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if _, throttled := errors.AsType[*ec2instances.Throttled](err); throttled != test.throttled {
					t.Errorf("%v is throttled: %v, want %v", err, throttled, test.throttled)
				}
				if known := err == nil && !slices.Contains(test.errs, error(errUnknown)); (answer.Instance != nil) != known {
					t.Errorf("got instance %v", answer.Instance)
				}
				if requests != test.requests || !slices.Equal(outcomes, []string{test.outcome}) {
					t.Errorf("%d requests with outcomes %v; want %d with %s", requests, outcomes, test.requests, test.outcome)
				}
			})
		})
	}
}

// The deadline of the caller ends the retries, and the error is EC2's.
func TestThrottlingUntilTheDeadlineIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := ec2instances.New(ec2instances.Options{DescribeInstances: stub(func([]string, string) (*ec2.DescribeInstancesOutput, error) {
			return nil, errThrottled
		}).describe})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := of.Instance(ctx, region, "i-0000000a", 100)
		if _, throttled := errors.AsType[*ec2instances.Throttled](err); !throttled {
			t.Errorf("got %v", err)
		}
	})
}

// took returns the duration of a number of consecutive questions.
func took(t *testing.T, of *ec2instances.Client, in string, questions int) time.Duration {
	t.Helper()
	begin := time.Now()
	for n := range questions {
		if _, err := of.Instance(t.Context(), in, fmt.Sprintf("i-%08x", n), 1); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin)
}

func TestRateLimitIsPerRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		describe := func(ids []string, _ string) (*ec2.DescribeInstancesOutput, error) { return answerWith(ids...), nil }
		of := ec2instances.New(ec2instances.Options{PerSecond: 1, Burst: 5, DescribeInstances: stub(describe).describe})
		for _, in := range []string{"eu-west-1", "eu-west-2"} {
			if got := took(t, of, in, 8); got.Round(time.Millisecond) != 3*time.Second {
				t.Errorf("8 requests in %s took %s, want 3 seconds: 5 at once, 3 later", in, got)
			}
		}
	})
}

func TestRateLimitAdaptsToThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := false
		describe := func(ids []string, _ string) (*ec2.DescribeInstancesOutput, error) {
			if throttle {
				return nil, errThrottled
			}
			return answerWith(ids...), nil
		}
		of := ec2instances.New(ec2instances.Options{PerSecond: 10, Burst: 10, DescribeInstances: stub(describe).describe})
		if got := took(t, of, region, 10); got != 0 {
			t.Errorf("the burst took %s", got)
		}
		throttle = true
		for range 2 {
			if _, err := of.Instance(t.Context(), region, "i-0000000a", 1); err == nil {
				t.Error("no error")
			}
		}
		throttle = false
		// 2.5 a second, then 3.5, 4.5, …: the first one waits 0.4 seconds.
		if got := took(t, of, region, 1); got < 300*time.Millisecond || got > 500*time.Millisecond {
			t.Errorf("the first request after that took %s", got)
		}
		took(t, of, region, 10)
		time.Sleep(2 * time.Second)
		if got := took(t, of, region, 10); got != 0 {
			t.Errorf("with answers again, the burst took %s", got)
		}
	})
}

// Invented ids get requests of their own. Other questions are not delayed.
func TestSingleQuestionsDoNotDelayBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		describe := func(ids []string, _ string) (*ec2.DescribeInstancesOutput, error) {
			if strings.HasPrefix(ids[0], "i-f") {
				if len(ids) == 1 {
					return nil, errUnknown
				}
				return answerWith(), nil
			}
			return answerWith(ids...), nil
		}
		of := ec2instances.New(ec2instances.Options{PerSecond: 1, Burst: 1, BatchSize: 50, DescribeInstances: stub(describe).describe})
		var made sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for n := range 40 {
			made.Go(func() {
				if answer, err := of.Instance(ctx, region, fmt.Sprintf("i-f%07x", n), 1); err != nil || answer.Instance != nil {
					t.Errorf("%+v, %v", answer, err)
				}
			})
		}
		time.Sleep(5 * time.Second)
		// Four batches may wait for the rate limit first, and one single question.
		begin := time.Now()
		if answer, err := of.Instance(ctx, region, "i-0000000a", 1); err != nil || answer.Instance == nil {
			t.Errorf("%+v, %v", answer, err)
		}
		if got := time.Since(begin); got > 7*time.Second {
			t.Errorf("the question of another took %s", got)
		}
		made.Wait()
	})
}

// Two callers that look up the same instance share a request, but each has its own
// deadline.
func TestCallerWithMoreTimeRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		of := ec2instances.New(ec2instances.Options{DescribeInstances: stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput,
			error,
		) {
			requests++
			n := requests
			time.Sleep(time.Second)
			if n == 1 {
				return nil, errThrottled
			}
			return answerWith(ids...), nil
		}).describe})
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := of.Instance(t.Context(), region, "i-0000000a", 1); err == nil {
				t.Error("the impatient one was answered")
			}
		})
		both.Go(func() {
			time.Sleep(500 * time.Millisecond)
			if answer, err := of.Instance(t.Context(), region, "i-0000000a", 8); err != nil || answer.Instance == nil {
				t.Errorf("the patient one: %+v, %v", answer, err)
			}
		})
		both.Wait()
		if requests != 2 {
			t.Errorf("%d requests, want 2", requests)
		}
	})
}

func TestConcurrentLookupsOfOneInstanceAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		of := ec2instances.New(ec2instances.Options{DescribeInstances: stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput,
			error,
		) {
			requests++
			time.Sleep(time.Second)
			return answerWith(ids...), nil
		}).describe})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if answer, err := of.Instance(t.Context(), region, "i-0000000a", tries); err != nil || answer.Instance == nil {
					t.Errorf("%+v, %v", answer, err)
				}
			})
		}
		all.Wait()
		if requests != 1 {
			t.Errorf("%d requests", requests)
		}
	})
}

// Requests for credentials use the SDK's own retries.
func TestTransientFailureOfTheMetadataServiceIsRetried(t *testing.T) {
	s := newFixture(t)
	own, other := s.Launch(fakeaws.Instance{Role: "server"}), s.Launch(fakeaws.Instance{})
	metadata, err := s.Metadata(own.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	of := s.client(t)
	metadata.Break(fakeaws.Fault{Kind: fakeaws.Broken, Times: 1})
	if answer, err := of.Instance(t.Context(), region, other.ID, 1); err != nil || answer.Instance == nil {
		t.Errorf("%+v, %v", answer, err)
	}
}

// The empty region and the region of the environment share limits.
func TestEmptyRegionIsThatOfTheEnvironment(t *testing.T) {
	s := newFixture(t)
	of := s.client(t)
	results := s.together(t, of, []string{"i-00000001", "i-00000002", "i-00000003", "i-00000004", "i-00000005"})
	if got := of.Waiting(""); got != 1 {
		t.Errorf("%d wait in the region of the environment, want 1", got)
	}
	s.EC2.Heal()
	for range 5 {
		if r := <-results; r.err != nil || r.answer.Instance != nil {
			t.Errorf("%+v, %v", r.answer, r.err)
		}
	}
}

// A failure of EC2 is retried by the client, and not by the SDK as well.
func TestEC2GetsOneRequestPerTry(t *testing.T) {
	s := newFixture(t)
	of, instance := s.client(t), s.Launch(fakeaws.Instance{})
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Broken})
	if _, err := of.Instance(t.Context(), region, instance.ID, 2); err == nil {
		t.Error("no error")
	}
	// net/http may repeat a request that was not written completely. The SDK would make six.
	if got := s.EC2.Requests(); got < 2 || got > 3 {
		t.Errorf("%d requests for 2 tries", got)
	}
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Broken, Times: 1})
	if answer, err := of.Instance(t.Context(), region, instance.ID, 2); err != nil || answer.Instance == nil {
		t.Errorf("%+v, %v", answer, err)
	}
}
