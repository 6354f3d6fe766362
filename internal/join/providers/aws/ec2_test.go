package aws_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func TestUnknownInstanceIsRefused(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	req := s.request(t, instance)
	s.Forget(instance.ID)
	_, err := s.attestor(t, nil).Attest(t.Context(), req)
	refused(t, err, aws.InstanceNotFound)
}

func TestInstanceIsFoundOnALaterPage(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	s.PrecedeByEmptyPages(2)
	if _, err := s.attestor(t, nil).Attest(t.Context(), s.request(t, instance)); err != nil {
		t.Error(err)
	}
	if got := s.EC2.Requests(); got != 3 {
		t.Errorf("%d requests for three pages", got)
	}
}

// TestFailureOfEC2IsNoRefusal goes through the SDK with all its retries.
func TestFailureOfEC2IsNoRefusal(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	req := s.request(t, instance)
	for _, test := range []struct {
		name  string
		fault fakeaws.Fault
		text  string
	}{
		{
			"throttled until the deadline",
			fakeaws.Fault{Kind: fakeaws.Throttled},
			"look up instance " + instance.ID + " in EC2 in eu-west-1",
		},
		{"failing until the deadline", fakeaws.Fault{Kind: fakeaws.Broken}, "in EC2 in eu-west-1"},
		{"down until the deadline", fakeaws.Fault{Kind: fakeaws.Down}, "in EC2 in eu-west-1"},
		{"slow until the deadline", fakeaws.Fault{Kind: fakeaws.Slow, Delay: time.Hour}, "deadline"},
		{"hanging until the deadline", fakeaws.Fault{Kind: fakeaws.Hanging}, "deadline"},
		{"answering nothing", fakeaws.Fault{Kind: fakeaws.Empty}, "it answered with 0 instances"},
		{"not allowing it", fakeaws.Fault{Kind: fakeaws.Forbidden}, "allow ec2:DescribeInstances to the role of this server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := s.attestor(t, nil)
			limit := time.Minute // in which EC2 answers, however busy the machine is
			if strings.HasSuffix(test.name, "until the deadline") {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s.EC2.Break(test.fault)
			_, err := a.Attest(ctx, req)
			couldNot(t, err, test.text)
			s.EC2.Heal()
			if _, err := a.Attest(t.Context(), req); err != nil {
				t.Errorf("recovered: %v", err)
			}
		})
	}
}

func TestTransientFailureOfEC2IsRetried(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	for name, kind := range map[string]fakeaws.FaultKind{
		"throttled": fakeaws.Throttled, "failing": fakeaws.Broken, "down": fakeaws.Down,
	} {
		s.EC2.Break(fakeaws.Fault{Kind: kind, Times: 1})
		if _, err := s.attestor(t, nil).Attest(t.Context(), s.request(t, instance)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidCredentialsOfTheServerAreAnError(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err := s.attestor(t, nil).Attest(t.Context(), s.request(t, instance))
	couldNot(t, err, "AuthFailure")
}

func TestGone(t *testing.T) {
	s := newFixture(t)
	in := func(region string) fakeaws.Instance {
		return s.launch(func(i *fakeaws.Instance) { i.Region = region })
	}
	running, stopped, terminated, forgotten := s.launch(nil), s.launch(nil), s.launch(nil), s.launch(nil)
	elsewhere, before := in("eu-north-1"), in("eu-west-3")
	s.Stop(stopped.ID)
	s.Terminate(terminated.ID)
	s.Forget(forgotten.ID)
	a := s.attestor(t, func(o *aws.Options) { o.Regions = []string{region, "eu-north-1"} })
	for _, test := range []struct {
		name, id, region string
		want             bool
	}{
		{"running", running.ID, region, false},
		{"stopped", stopped.ID, region, false},
		{"terminated", terminated.ID, region, true},
		{"forgotten", forgotten.ID, region, true},
		{"in another of the regions", elsewhere.ID, "eu-north-1", false},
		{"in another of the regions than it is said to be", elsewhere.ID, region, false},
		{"in a region that is not configured any more", before.ID, "eu-west-3", false},
	} {
		if gone, err := a.Gone(t.Context(), test.id, test.region); err != nil || gone != test.want {
			t.Errorf("%s: %v, %v", test.name, gone, err)
		}
	}
	if gone, err := a.Gone(t.Context(), "worker-1", region); err == nil || gone {
		t.Errorf("not an instance: %v, %v", gone, err)
	}
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Forbidden})
	if gone, err := a.Gone(t.Context(), terminated.ID, region); err == nil || gone {
		t.Errorf("EC2 does not say: %v, %v", gone, err)
	}
}
