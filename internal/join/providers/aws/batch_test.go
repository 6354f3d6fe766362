package aws_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
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

// together attests machines while EC2 hangs: the first ones have requests of their own,
// and the others wait together.
func together(ctx context.Context, t *testing.T, s *fixture, a *aws.Attestor, machines int, change func(fakeaws.Instance)) <-chan outcome {
	t.Helper()
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
		until(t, func() bool { return s.EC2.Requests() > before+n })
	}
	for n := range machines - maxInFlight {
		come()
		until(t, func() bool { return a.Waiting(region) == n+1 })
	}
	return outcomes
}

// until waits for a condition, until the test ends.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

func nothing(fakeaws.Instance) {}

func TestConcurrentLookupsAreBatched(t *testing.T) {
	s := newFixture(t)
	const machines = maxInFlight + 100 + 100 + 50
	outcomes := together(t.Context(), t, s, s.attestor(t, nil), machines, nothing)
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
	// One each for the first four, two for 100, one for 50, and more only if one of
	// them took too long.
	if got := s.EC2.Requests(); got < maxInFlight+3 || got > machines/10 {
		t.Errorf("%d requests for %d machines", got, machines)
	}
}

func TestUnknownInstanceInABatchIsRefusedAlone(t *testing.T) {
	s := newFixture(t)
	const machines = 10
	unknown := ""
	outcomes := together(t.Context(), t, s, s.attestor(t, nil), machines, func(i fakeaws.Instance) {
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
	outcomes := together(t.Context(), t, s, s.attestor(t, nil), machines, nothing)
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
	a := s.attestor(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	outcomes := together(ctx, t, s, a, 7, nothing)
	instance := s.launch(nil)
	req := s.request(t, instance)
	patient := make(chan error, 1)
	go func() {
		_, err := a.Attest(t.Context(), req)
		patient <- err
	}()
	until(t, func() bool { return a.Waiting(region) == 4 })
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
