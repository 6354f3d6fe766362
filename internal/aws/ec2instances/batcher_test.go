package ec2instances_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const (
	account = fakeaws.DefaultAccount
	region  = "eu-west-1"
	// tries is the number of tries of short requests.
	tries = 3
)

// fixture is a fake AWS.
type fixture struct {
	*fakeaws.Cloud
	mu       sync.Mutex
	outcomes map[string]int
}

// newFixture connects the AWS SDK of this process to a new fake AWS, as a user of its
// account.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	server := cloud.User(account, "server")
	environment := append(cloud.Environment(),
		"AWS_ACCESS_KEY_ID="+server.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+server.SecretAccessKey, "AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PROFILE=", "AWS_REGION="+region,
		"AWS_EC2_METADATA_DISABLED=true")
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return &fixture{Cloud: cloud, outcomes: map[string]int{}}
}

func (s *fixture) client(t *testing.T) *ec2instances.Client {
	t.Helper()
	options := ec2instances.Options{PerSecond: 1000, Burst: 1000, TryTimeout: fakeaws.Patience, Observe: func(outcome string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.outcomes[outcome]++
	}}
	client, err := ec2instances.Load(t.Context(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// requests returns the number of requests. The SDK may send one more than once.
func (s *fixture) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outcomes[ec2instances.OutcomeAnswered] + s.outcomes[ec2instances.OutcomeThrottled] + s.outcomes[ec2instances.OutcomeFailed]
}

// result is the result of one question.
type result struct {
	id     string
	answer ec2instances.Answer
	err    error
}

// maxInFlight is the maximum number of batches in flight in a region.
const maxInFlight = 4

// together looks up instances while EC2 hangs: the first ones have requests of their own,
// and the others wait together.
func (s *fixture) together(t *testing.T, of *ec2instances.Client, ids []string) <-chan result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fakeaws.Patience)
	t.Cleanup(cancel)
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Hanging})
	results := make(chan result, len(ids))
	for n, id := range ids {
		go func() {
			answer, err := of.Instance(ctx, region, id, tries)
			results <- result{id, answer, err}
		}()
		if n < maxInFlight {
			fakeaws.Until(t, func() bool { return s.EC2.Requests() > n })
		}
	}
	fakeaws.Until(t, func() bool { return of.Waiting(region) == len(ids)-maxInFlight })
	return results
}

func TestConcurrentLookupsAreBatched(t *testing.T) {
	s := newFixture(t)
	of := s.client(t)
	known, unknown := map[string]string{}, map[string]bool{}
	for n := range 300 {
		instance := s.Launch(fakeaws.Instance{})
		known[instance.ID] = instance.PrivateDNSName
		if n%50 == 49 {
			s.Forget(instance.ID)
			unknown[instance.ID] = true
		}
	}
	results := s.together(t, of, slices.Sorted(maps.Keys(known)))
	s.EC2.Heal()
	for range known {
		r := <-results
		switch {
		case r.err != nil:
			t.Fatal(r.err)
		case unknown[r.id]:
			if r.answer.Instance != nil {
				t.Errorf("%s does not exist and is found as %s", r.id, *r.answer.Instance.InstanceId)
			}
		case r.answer.Instance == nil || *r.answer.Instance.InstanceId != r.id || *r.answer.Instance.PrivateDnsName != known[r.id] ||
			r.answer.Account != account:
			t.Errorf("%s is found as another one", r.id)
		}
	}
	// The first four have a request each, the others three, and each that EC2 does not
	// know has one more.
	if got := s.requests(); got != maxInFlight+3+len(unknown) {
		t.Errorf("%d requests about 300 instances", got)
	}
}

func TestInstancesThatABatchOmitsAreLookedUpAlone(t *testing.T) {
	for name, test := range map[string]struct {
		fault            fakeaws.FaultKind
		failed, requests int
	}{
		"none of them exists":       {fakeaws.Healthy, 0, maxInFlight + 1 + 6},
		"the answers were cut off":  {fakeaws.Empty, 6, maxInFlight + 1 + 6},
		"EC2 does not allow it now": {fakeaws.Forbidden, 6, maxInFlight + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			var ids []string
			for n := range maxInFlight + 6 {
				ids = append(ids, fmt.Sprintf("i-%017x", n))
			}
			results := s.together(t, s.client(t), ids)
			s.EC2.Break(fakeaws.Fault{Kind: test.fault}) // hanging requests succeed
			failed := 0
			for range ids {
				r := <-results
				if r.answer.Instance != nil {
					t.Errorf("%s is %s", r.id, *r.answer.Instance.InstanceId)
				}
				if r.err != nil {
					failed++
				}
			}
			if got := s.requests(); failed != test.failed || got != test.requests {
				t.Errorf("%d of them failed, with %d requests; want %d and %d", failed, got, test.failed, test.requests)
			}
		})
	}
}

// idsOf returns the instances of a request.
func idsOf(in *ec2.DescribeInstancesInput) []string {
	if len(in.Filters) > 0 {
		return in.Filters[0].Values
	}
	return in.InstanceIds
}

// answerWith returns an answer with instances.
func answerWith(ids ...string) *ec2.DescribeInstancesOutput {
	out := &ec2.DescribeInstancesOutput{}
	for _, id := range ids {
		out.Reservations = append(out.Reservations, types.Reservation{OwnerId: aws.String(account), Instances: []types.Instance{{
			InstanceId: aws.String(id), State: &types.InstanceState{Name: types.InstanceStateNameRunning},
		}}})
	}
	return out
}

// stub is EC2 with fixed answers. The test controls the time.
type stub func(ids []string, token string) (*ec2.DescribeInstancesOutput, error)

func (f stub) describe(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return f(idsOf(in), aws.ToString(in.NextToken))
}

// An answer that omits instances of a batch does not mean that they do not exist.
func TestTruncatedAnswerIsNotNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		of := ec2instances.New(ec2instances.Options{DescribeInstances: stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput,
			error,
		) {
			mu.Lock()
			sizes = append(sizes, len(ids))
			mu.Unlock()
			time.Sleep(time.Second)
			if len(ids) > 1 {
				return answerWith(ids[:2]...), nil
			}
			return answerWith(ids...), nil
		}).describe})
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond)
				id := fmt.Sprintf("i-%08x", n)
				if answer, err := of.Instance(t.Context(), region, id, tries); err != nil || answer.Instance == nil ||
					*answer.Instance.InstanceId != id {
					t.Errorf("%s: %+v, %v", id, answer, err)
				}
			})
		}
		all.Wait()
		if want := []int{1, 5, 1, 1, 1}; !slices.Equal(sizes, want) {
			t.Errorf("requests about %v instances, want %v", sizes, want)
		}
	})
}

func TestPages(t *testing.T) {
	page := func(next string, ids ...string) *ec2.DescribeInstancesOutput {
		out := answerWith(ids...)
		if next != "" {
			out.NextToken = &next
		}
		return out
	}
	for _, test := range []struct {
		name  string
		pages stub
		want  string
	}{
		{"all pages are read", func(_ []string, token string) (*ec2.DescribeInstancesOutput, error) {
			return map[string]*ec2.DescribeInstancesOutput{"": page("1"), "1": page("2", "i-0000000a"), "2": page("")}[token], nil
		}, ""},
		{"a page that is repeated is an error", func([]string, string) (*ec2.DescribeInstancesOutput, error) {
			return page("1", "i-0000000a"), nil
		}, "repeats a page"},
		{"pages without end are an error", func(_ []string, token string) (*ec2.DescribeInstancesOutput, error) {
			return page(token + "x"), nil
		}, "more than 100 pages"},
		{"pages without the instance are an error", func([]string, string) (*ec2.DescribeInstancesOutput, error) {
			return page("", "i-0000000b"), nil
		}, "EC2 answered a request about instance i-0000000a without it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := ec2instances.New(ec2instances.Options{DescribeInstances: test.pages.describe, PerSecond: 1000, Burst: 1000})
			answer, err := of.Instance(t.Context(), region, "i-0000000a", tries)
			if test.want == "" {
				if err != nil || answer.Instance == nil {
					t.Errorf("got %+v, %v", answer, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v; want %q", answer, err, test.want)
			}
		})
	}
}

// requests returns the sizes of requests to EC2, each of which takes a second.
func requests(t *testing.T, options ec2instances.Options, arrivals []time.Duration) (sizes []int, throttled int) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		options.DescribeInstances = stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput, error) {
			mu.Lock()
			sizes = append(sizes, len(ids))
			mu.Unlock()
			time.Sleep(time.Second)
			return answerWith(ids...), nil
		}).describe
		of := ec2instances.New(options)
		var all sync.WaitGroup
		for n, after := range arrivals {
			all.Go(func() {
				time.Sleep(after)
				_, err := of.Instance(t.Context(), region, fmt.Sprintf("i-%017x", n), tries)
				var turnedAway *ec2instances.Throttled
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.As(err, &turnedAway):
					throttled++
				case err != nil:
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	return sizes, throttled
}

// every returns n arrivals with a fixed interval.
func every(n int, step time.Duration) []time.Duration {
	arrivals := make([]time.Duration, n)
	for i := range arrivals {
		arrivals[i] = time.Duration(i) * step
	}
	return arrivals
}

func TestBatches(t *testing.T) {
	for _, test := range []struct {
		name      string
		options   ec2instances.Options
		arrivals  []time.Duration
		want      []int
		throttled int
	}{
		{"a question that comes alone does not wait", ec2instances.Options{}, every(3, 2*time.Second), []int{1, 1, 1}, 0},
		{
			"a question that comes while others are in flight waits for more",
			ec2instances.Options{BatchWait: 95 * time.Millisecond},
			every(21, 10*time.Millisecond),
			[]int{1, 10, 10},
			0,
		},
		{
			"a full batch does not wait",
			ec2instances.Options{BatchSize: 5, BatchWait: 100 * time.Millisecond},
			every(11, time.Millisecond),
			[]int{1, 5, 5},
			0,
		},
		{
			"no more than four batches are in flight",
			ec2instances.Options{BatchSize: 2},
			every(13, time.Millisecond),
			[]int{1, 2, 2, 2, 2, 2, 2},
			0,
		},
		{
			"a batch has 100 instances at most",
			ec2instances.Options{BatchSize: 1000, BatchWait: time.Hour},
			append(every(1, 0), slices.Repeat([]time.Duration{time.Millisecond}, 250)...),
			[]int{1, 100, 100, 50},
			0,
		},
		{
			"the limit on requests makes batches larger",
			ec2instances.Options{PerSecond: 1, Burst: 1},
			every(60, 97*time.Millisecond),
			[]int{1, 1, 1, 1, 7, 10, 10, 11, 10, 8},
			0,
		},
		{
			"a question that would wait too long is throttled",
			ec2instances.Options{PerSecond: 1, Burst: 1, BatchSize: 2},
			every(20, time.Millisecond),
			[]int{1, 2, 2, 2, 2, 2},
			9,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			sizes, throttled := requests(t, test.options, test.arrivals)
			if !slices.Equal(sizes, test.want) || throttled != test.throttled {
				t.Errorf("requests about %v, %d throttled; want %v and %d", sizes, throttled, test.want, test.throttled)
			}
		})
	}
}

func TestRateLimitRejectsRequestsBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observed := map[string]int{}
		of := ec2instances.New(ec2instances.Options{
			PerSecond: 0.01, Burst: 1,
			DescribeInstances: stub(func(ids []string, _ string) (*ec2.DescribeInstancesOutput,
				error,
			) {
				return answerWith(ids...), nil
			}).describe,
			Observe: func(outcome string) { observed[outcome]++ },
		})
		ask := func(id string) error {
			_, err := of.Instance(t.Context(), region, id, tries)
			return err
		}
		if err := ask("i-00000001"); err != nil {
			t.Fatal(err)
		}
		var throttled *ec2instances.Throttled
		if err := ask("i-00000002"); !errors.As(err, &throttled) || !strings.Contains(err.Error(), "rate limit of this server") {
			t.Errorf("got %v", err)
		}
		time.Sleep(100 * time.Second)
		if err := ask("i-00000002"); err != nil {
			t.Errorf("later: %v", err)
		}
		if want := map[string]int{"answered": 2, "limited": 1}; !maps.Equal(observed, want) {
			t.Errorf("observed %v, want %v", observed, want)
		}
	})
}
