package instances_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/instances"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func TestAnswersAreCached(t *testing.T) {
	const ttl, missing = 2 * time.Minute, 5 * time.Second
	for _, test := range []struct {
		name  string
		id    func(*fixture) string
		lasts time.Duration
	}{
		{"a node that runs", func(s *fixture) string { return s.node().ID }, ttl},
		{"no instance", func(*fixture) string { return "i-00000000000000000" }, missing},
		{"a stopped one", func(s *fixture) string {
			node := s.node()
			s.Stop(node.ID)
			return node.ID
		}, missing},
		{"one that has no name yet", func(s *fixture) string {
			node := s.node()
			s.Change(node.ID, func(i *fakeaws.Instance) { i.PrivateDNSName = "" })
			return node.ID
		}, missing},
		{"one that has no profile yet", func(s *fixture) string { return s.Launch(fakeaws.Instance{}).ID }, missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			id, of := test.id(s), s.instances(t, nil)
			ask := func(requests int) {
				t.Helper()
				if _, err := of.Instance(t.Context(), id, false); err != nil {
					t.Fatal(err)
				}
				if got := s.requests("EC2"); got != requests {
					t.Errorf("%d requests, want %d", got, requests)
				}
			}
			ask(1)
			ask(1)
			s.pass(test.lasts - time.Millisecond)
			ask(1)
			s.pass(2 * time.Millisecond)
			ask(2)
			ask(2)
		})
	}
}

func TestRolesAreCached(t *testing.T) {
	s := newFixture(t)
	first, second, of := s.node(), s.node(), s.instances(t, nil)
	for _, id := range []string{first.ID, second.ID, first.ID} {
		if got := found(t, of, id, true); len(got.Roles) != 1 {
			t.Errorf("got %+v", *got)
		}
	}
	if got := s.requests("IAM"); got != 1 {
		t.Errorf("%d requests about one profile", got)
	}
	s.SetInstanceProfile(fakeaws.InstanceProfile{ARN: nodeProfile})
	if got := found(t, of, first.ID, true); len(got.Roles) != 1 {
		t.Errorf("got %+v", *got)
	}
	s.pass(2*time.Minute + time.Millisecond)
	if got := found(t, of, first.ID, true); got.Roles != nil {
		t.Errorf("got %+v", *got)
	}
	s.SetInstanceProfile(fakeaws.InstanceProfile{ARN: nodeProfile, Roles: []string{nodeRole}})
	s.pass(5*time.Second + time.Millisecond)
	if got := found(t, of, first.ID, true); len(got.Roles) != 1 {
		t.Errorf("an answer without roles is cached for too long: %+v", *got)
	}
}

func TestAnswersAreCopies(t *testing.T) {
	s := newFixture(t)
	node, of := s.node(), s.instances(t, nil)
	mine := found(t, of, node.ID, true)
	mine.Running, mine.Roles[0] = false, "arn:aws:iam::111122223333:role/admin"
	if got := found(t, of, node.ID, true); !got.Running || got.Roles[0] != nodeRole {
		t.Errorf("got %+v", *got)
	}
}

// Requests with invented ids must not evict existing instances.
func TestInventedIDsDoNotEvictInstances(t *testing.T) {
	s := newFixture(t)
	of := s.instances(t, func(o *instances.Options) { o.Size = 3 })
	nodes := []string{s.node().ID, s.node().ID, s.node().ID}
	for _, id := range nodes {
		found(t, of, id, false)
	}
	for n := range 10 {
		if instance, err := of.Instance(t.Context(), fmt.Sprintf("i-%017x", n), false); instance != nil || err != nil {
			t.Fatalf("%+v, %v", instance, err)
		}
	}
	before := s.requests("EC2")
	for _, id := range nodes {
		found(t, of, id, false)
	}
	if got := s.requests("EC2"); got != before {
		t.Errorf("%d requests about instances that were known", got-before)
	}
	found(t, of, s.node().ID, false)
	found(t, of, nodes[1], false)
	found(t, of, nodes[0], false)
	if got := s.requests("EC2"); got != before+2 {
		t.Errorf("%d requests, want one for the new instance and one for the evicted one", got-before)
	}
}

func TestRegionIsRequired(t *testing.T) {
	newFixture(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if _, _, err := instances.NewIAM(t.Context(), "", nil); err == nil {
		t.Error("a client without a region")
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	if _, region, err := instances.NewIAM(t.Context(), "", nil); err != nil || region != "eu-west-1" {
		t.Error(region, err)
	}
}
