package instances_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/iam/instances"
	"github.com/node-authorizer/node-authorizer/internal/fakeaws"
)

// until waits for a condition, at the longest until the test ends.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// outcome is what became of one question.
type outcome struct {
	id       string
	instance *iam.Instance
	err      error
}

// underWay is how many requests about instances there may be at once.
const underWay = 4

// crowd asks about instances while EC2 hangs: as many as there may be requests are
// asked about alone, and the others wait together.
func (s *site) crowd(t *testing.T, of *instances.Instances, ids []string) <-chan outcome {
	t.Helper()
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Hanging})
	outcomes := make(chan outcome, len(ids))
	for n, id := range ids {
		go func() {
			instance, err := of.Instance(t.Context(), id, false)
			outcomes <- outcome{id, instance, err}
		}()
		if n < underWay {
			until(t, func() bool { return s.EC2.Requests() > n })
		}
	}
	until(t, func() bool { return of.Waiting() == len(ids)-underWay })
	return outcomes
}

func TestThoseWhoComeTogetherAreAskedAboutTogether(t *testing.T) {
	s := newSite(t)
	of := s.instances(t, nil)
	known, unknown := map[string]string{}, map[string]bool{}
	for n := range 300 {
		node := s.node()
		known[node.ID] = node.PrivateDNSName
		if n%10 == 0 {
			s.Forget(node.ID)
			unknown[node.ID] = true
		}
	}
	outcomes := s.crowd(t, of, slices.Sorted(maps.Keys(known)))
	s.EC2.Heal()
	for range known {
		o := <-outcomes
		switch {
		case o.err != nil:
			t.Fatal(o.err)
		case unknown[o.id]:
			if o.instance != nil {
				t.Errorf("%s does not exist and is %+v", o.id, *o.instance)
			}
		case o.instance == nil || o.instance.ID != o.id || o.instance.PrivateDNSName != known[o.id]:
			t.Errorf("%s is taken for %+v", o.id, o.instance)
		}
	}
	// The first four have a request each, the others three.
	if got := s.requests("EC2"); got != underWay+3 {
		t.Errorf("%d requests about 300 instances", got)
	}
}

func TestABatchThatIsAnsweredWithNothingIsLookedAtTwice(t *testing.T) {
	for name, test := range map[string]struct {
		fault            fakeaws.FaultKind
		failed, requests int
	}{
		"none of them exists":       {fakeaws.Healthy, 0, underWay + 2},
		"the answers were cut off":  {fakeaws.Empty, 6, underWay + 2},
		"EC2 does not allow it now": {fakeaws.Forbidden, 6, underWay + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			var ids []string
			for n := range underWay + 6 {
				ids = append(ids, fmt.Sprintf("i-%017x", n))
			}
			outcomes := s.crowd(t, s.instances(t, nil), ids)
			s.EC2.Break(fakeaws.Fault{Kind: test.fault}) // those that hang are answered well
			failed := 0
			for range ids {
				o := <-outcomes
				if o.instance != nil {
					t.Errorf("%s is %+v", o.id, *o.instance)
				}
				if o.err != nil {
					failed++
				}
			}
			if got := s.requests("EC2"); failed != test.failed || got != test.requests {
				t.Errorf("%d of them failed, with %d requests; want %d and %d", failed, got, test.failed, test.requests)
			}
		})
	}
}

// ec2Func stands for EC2 where time is the test's.
type ec2Func func(ids []string) error

func (f ec2Func) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	ids := in.InstanceIds
	if len(in.Filters) > 0 {
		ids = in.Filters[0].Values
	}
	if err := f(ids); err != nil {
		return nil, err
	}
	out := &ec2.DescribeInstancesOutput{}
	for _, id := range ids {
		out.Reservations = append(out.Reservations, types.Reservation{OwnerId: aws.String(account), Instances: []types.Instance{{
			InstanceId: aws.String(id), State: &types.InstanceState{Name: types.InstanceStateNameRunning},
		}}})
	}
	return out, nil
}

// requests are the sizes of requests to EC2, each of which takes a second.
func requests(t *testing.T, options instances.Options, arrivals []time.Duration) (sizes []int, throttled int) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		options.EC2 = ec2Func(func(ids []string) error {
			mu.Lock()
			sizes = append(sizes, len(ids))
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		})
		of := instances.New(options)
		var all sync.WaitGroup
		for n, after := range arrivals {
			all.Go(func() {
				time.Sleep(after)
				_, err := of.Instance(t.Context(), fmt.Sprintf("i-%017x", n), false)
				var turnedAway *iam.Throttled
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

// every is n arrivals, one after the other.
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
		options   instances.Options
		arrivals  []time.Duration
		want      []int
		throttled int
	}{
		{"who comes alone does not wait", instances.Options{}, every(3, 2*time.Second), []int{1, 1, 1}, 0},
		{"who comes while others are asked about waits for more", instances.Options{BatchWait: 95 * time.Millisecond}, every(21, 10*time.Millisecond), []int{1, 10, 10}, 0},
		{"a full batch does not wait", instances.Options{BatchSize: 5, BatchWait: 100 * time.Millisecond}, every(11, time.Millisecond), []int{1, 5, 5}, 0},
		{"no more than four requests are under way", instances.Options{BatchSize: 2}, every(13, time.Millisecond), []int{1, 2, 2, 2, 2, 2, 2}, 0},
		{"a batch has 100 instances at most", instances.Options{BatchSize: 1000, BatchWait: time.Hour}, append(every(1, 0), slices.Repeat([]time.Duration{time.Millisecond}, 250)...), []int{1, 100, 100, 50}, 0},
		{
			"the limit on requests makes batches larger",
			instances.Options{PerSecond: 1, Burst: 1},
			every(60, 97*time.Millisecond),
			[]int{1, 1, 1, 1, 7, 10, 10, 11, 10, 8},
			0,
		},
		{"who would wait too long is told to come again", instances.Options{PerSecond: 1, Burst: 1, BatchSize: 2}, every(20, time.Millisecond), []int{1, 2, 2, 2, 2, 2}, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			sizes, throttled := requests(t, test.options, test.arrivals)
			if !slices.Equal(sizes, test.want) || throttled != test.throttled {
				t.Errorf("requests about %v, %d turned away; want %v and %d", sizes, throttled, test.want, test.throttled)
			}
		})
	}
}

func TestTheLimitEndsARequestThatHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observed := map[string]int{}
		of := instances.New(instances.Options{
			PerSecond: 0.01, Burst: 1, EC2: ec2Func(func([]string) error { return nil }),
			Observe: func(service, outcome string) { observed[service+" "+outcome]++ },
		})
		ask := func(id string) error {
			_, err := of.Instance(t.Context(), id, false)
			return err
		}
		if err := ask("i-00000001"); err != nil {
			t.Fatal(err)
		}
		var throttled *iam.Throttled
		if err := ask("i-00000002"); !errors.As(err, &throttled) || !strings.Contains(err.Error(), "limit on requests of this server") {
			t.Errorf("got %v", err)
		}
		time.Sleep(100 * time.Second)
		if err := ask("i-00000002"); err != nil {
			t.Errorf("later: %v", err)
		}
		if want := map[string]int{"EC2 answered": 2, "EC2 limited": 1}; !maps.Equal(observed, want) {
			t.Errorf("observed %v, want %v", observed, want)
		}
	})
}
