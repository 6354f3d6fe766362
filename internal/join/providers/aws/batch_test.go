package aws_test

import (
	"context"
	"errors"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// outcome is the result of one machine of several.
type outcome struct {
	instance fakeaws.Instance
	identity *attest.Identity
	err      error
}

// maxInFlight is the maximum number of concurrent requests to EC2.
const maxInFlight = 4

// patient returns an attestor whose requests to EC2 do not time out.
func (s *fixture) patient(t *testing.T) *aws.Attestor {
	t.Helper()
	client, err := ec2instances.Load(t.Context(), ec2instances.Options{TryTimeout: fakeaws.Patience}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.attestor(t, func(o *aws.Options) { o.EC2 = client })
}

// together attests machines while EC2 hangs: the first ones have requests of their own,
// and the others wait together.
func together(ctx context.Context, t *testing.T, s *fixture, a *aws.Attestor, machines int, change func(fakeaws.Instance)) <-chan outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, fakeaws.Patience)
	t.Cleanup(cancel)
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Hanging})
	outcomes := make(chan outcome, machines)
	come := func() {
		instance := s.launch(nil)
		req := s.request(t, instance)
		change(instance)
		go func() {
			identity, err := a.Attest(ctx, req)
			outcomes <- outcome{instance, identity, err}
		}()
	}
	before := s.EC2.Requests()
	for n := range maxInFlight {
		come()
		fakeaws.Until(t, func() bool { return s.EC2.Requests() > before+n })
	}
	for n := range machines - maxInFlight {
		come()
		fakeaws.Until(t, func() bool { return a.Waiting(region) == n+1 })
	}
	return outcomes
}

func nothing(fakeaws.Instance) {}

func TestConcurrentLookupsAreBatched(t *testing.T) {
	s := newFixture(t)
	const machines = maxInFlight + 100 + 50
	outcomes := together(t.Context(), t, s, s.patient(t), machines, nothing)
	s.EC2.Heal()
	for range machines {
		o := <-outcomes
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.identity.InstanceID != o.instance.ID || o.identity.NodeName != o.instance.PrivateDNSName {
			t.Errorf("instance %s is attested as %s, %s", o.instance.ID, o.identity.InstanceID, o.identity.NodeName)
		}
	}
	// One each for the first four, one for 100 and one for 50.
	if got := s.EC2.Requests(); got != maxInFlight+2 {
		t.Errorf("%d requests for %d machines", got, machines)
	}
}

func TestUnknownInstanceInABatchIsRefusedAlone(t *testing.T) {
	s := newFixture(t)
	const machines = 10
	unknown := ""
	outcomes := together(t.Context(), t, s, s.patient(t), machines, func(i fakeaws.Instance) {
		if i.ID == "i-0000000000f000007" {
			unknown = i.ID
			s.Forget(i.ID)
		}
	})
	s.EC2.Heal()
	for range machines {
		o := <-outcomes
		if o.instance.ID == unknown {
			refused(t, o.err, aws.InstanceNotFound)
		} else if o.err != nil {
			t.Error(o.err)
		}
	}
	if unknown == "" {
		t.Error("EC2 knew all of them")
	}
}

func TestFailureOfABatchFailsAllItsCallers(t *testing.T) {
	s := newFixture(t)
	const machines = 10
	outcomes := together(t.Context(), t, s, s.patient(t), machines, nothing)
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Forbidden})
	failed := 0
	for range machines {
		o := <-outcomes
		var refusal *attest.Refusal
		switch {
		case errors.As(o.err, &refusal):
			t.Errorf("a refusal: %v", o.err)
		case o.err != nil:
			failed++
		}
	}
	if failed != machines-maxInFlight {
		t.Errorf("%d failed, want those that waited", failed)
	}
}

func TestCanceledCallerDoesNotFailOthers(t *testing.T) {
	s := newFixture(t)
	a := s.patient(t)
	ctx, cancel := context.WithCancel(t.Context())
	outcomes := together(ctx, t, s, a, 7, nothing)
	instance := s.launch(nil)
	req := s.request(t, instance)
	patient := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), fakeaws.Patience)
		defer cancel()
		_, err := a.Attest(ctx, req)
		patient <- err
	}()
	fakeaws.Until(t, func() bool { return a.Waiting(region) == 4 })
	cancel()
	for range 7 {
		if o := <-outcomes; !errors.Is(o.err, context.Canceled) {
			t.Errorf("the canceled caller: %v", o.err)
		}
	}
	s.EC2.Heal()
	if err := <-patient; err != nil {
		t.Error(err)
	}
}
