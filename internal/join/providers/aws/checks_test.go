package aws_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// check is one rule: a difference from a machine that may join.
type check struct {
	name     string
	options  func(*aws.Options)
	instance func(*fakeaws.Instance)
	// change changes the instance in EC2 after the document was sent.
	change func(*fakeaws.Instance)
	remote string // the source address; empty for the machine's address
	code   verdict.Code
	detail string // the detail of the refusal after "instance ID "
}

func (c check) run(t *testing.T, s *fixture) {
	t.Helper()
	instance := s.launch(c.instance)
	req := s.request(t, instance)
	if c.change != nil {
		s.Change(instance.ID, c.change)
	}
	if c.remote != "" {
		req.RemoteAddr = netip.MustParseAddr(c.remote)
	}
	_, err := s.attestor(t, c.options).Attest(t.Context(), req)
	if c.code == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) || refusal.Code != c.code || refusal.Malformed {
		t.Fatalf("%v, want %s", err, c.code)
	}
	if got := strings.TrimPrefix(refusal.Detail, "instance "+instance.ID+" "); got != c.detail {
		t.Errorf("detail %q, want %q", got, c.detail)
	}
}

func tag(key, value string) func(*fakeaws.Instance) {
	return func(i *fakeaws.Instance) { i.Tags = map[string]string{key: value} }
}

func TestChecks(t *testing.T) {
	s := newFixture(t)
	oneAddress := func(address string) func(*fakeaws.Instance) {
		return func(i *fakeaws.Instance) {
			i.Interfaces = []fakeaws.Interface{{Private: []netip.Addr{netip.MustParseAddr(address)}}}
		}
	}
	for _, test := range []check{
		{
			name: "a machine in another account", code: aws.WrongAccount,
			instance: func(i *fakeaws.Instance) { i.Account = "444455556666" },
			detail:   "is in account 444455556666, want 111122223333",
		},
		{
			name:     "a machine in another region",
			instance: func(i *fakeaws.Instance) { i.Region = "eu-north-1" },
			code:     aws.WrongRegion, detail: "is in region eu-north-1, want eu-west-1",
		},
		{
			name:     "a machine in one of several regions",
			instance: func(i *fakeaws.Instance) { i.Region = "eu-north-1" },
			options:  func(o *aws.Options) { o.Regions = []string{"eu-west-1", "eu-north-1"} },
		},
		{
			name:   "a terminated machine",
			change: func(i *fakeaws.Instance) { i.State = fakeaws.Terminated },
			code:   aws.InstanceTerminated, detail: "is terminated",
		},
		{
			name:   "a machine that is shutting down",
			change: func(i *fakeaws.Instance) { i.State = fakeaws.ShuttingDown },
			code:   aws.InstanceTerminated, detail: "is shutting-down",
		},
		{
			name:   "a stopped machine",
			change: func(i *fakeaws.Instance) { i.State = fakeaws.Stopped },
			code:   aws.InstanceNotRunning, detail: "is stopped, not running",
		},
		{
			name:   "a machine that is stopping",
			change: func(i *fakeaws.Instance) { i.State = fakeaws.Stopping },
			code:   aws.InstanceNotRunning, detail: "is stopping, not running",
		},
		{
			name:   "a pending machine",
			change: func(i *fakeaws.Instance) { i.State = fakeaws.Pending },
			code:   aws.InstanceNotRunning, detail: "is pending, not running",
		},
		{
			name:     "a document from before a stop and start",
			instance: func(i *fakeaws.Instance) { i.PendingTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
			change:   func(i *fakeaws.Instance) { i.PendingTime = i.PendingTime.Add(61 * time.Second) },
			code:     aws.DocumentContradicted,
			detail: "was started at 2026-03-01T12:00:00Z by its document, and again at 2026-03-01T12:01:01Z by EC2: the " +
				"document is an old one",
		},
		{
			name:   "a document whose start differs by less than a minute",
			change: func(i *fakeaws.Instance) { i.PendingTime = i.PendingTime.Add(time.Minute) },
		},
		{
			name:     "a document with another address than in EC2",
			instance: oneAddress("10.1.0.7"), change: oneAddress("10.1.0.8"), remote: "10.1.0.8",
			code: aws.DocumentContradicted, detail: "has address 10.1.0.7 by its document, and 10.1.0.8 by EC2",
		},
		{
			name:   "a document with another zone than in EC2",
			change: func(i *fakeaws.Instance) { i.Zone = "eu-west-1b" },
			code:   aws.DocumentContradicted, detail: "is in zone eu-west-1a by its document, in eu-west-1b by EC2",
		},
		{
			name:     "a machine of another VPC",
			instance: func(i *fakeaws.Instance) { i.VPC = "vpc-0ffffffffffffffff" },
			code:     aws.WrongVPC, detail: "is in VPC vpc-0ffffffffffffffff, want vpc-0a1b2c3d4e5f60718",
		},
		{
			name:     "a machine of one of several VPCs",
			instance: func(i *fakeaws.Instance) { i.VPC = "vpc-0ffffffffffffffff" },
			options:  func(o *aws.Options) { o.VPCs = []string{vpc, "vpc-0ffffffffffffffff"} },
		},
		{
			name:     "a machine without the cluster's tag",
			instance: func(i *fakeaws.Instance) { i.Tags = nil },
			code:     aws.WrongCluster,
			detail: "has neither the tag KubernetesCluster=blue nor kubernetes.io/cluster/blue with the value owned or " +
				"shared; its KubernetesCluster is none",
		},
		{
			name:     "a machine of another cluster",
			instance: tag("KubernetesCluster", "green"),
			code:     aws.WrongCluster,
			detail: "has neither the tag KubernetesCluster=blue nor kubernetes.io/cluster/blue with the value owned or " +
				"shared; its KubernetesCluster is green",
		},
		{
			name:     "a tag in another case",
			instance: tag("KubernetesCluster", "Blue"),
			code:     aws.WrongCluster,
			detail: "has neither the tag KubernetesCluster=blue nor kubernetes.io/cluster/blue with the value owned or " +
				"shared; its KubernetesCluster is Blue",
		},
		{
			name:     "a cluster tag of no known value",
			instance: tag("kubernetes.io/cluster/blue", "rented"),
			code:     aws.WrongCluster,
			detail: "has neither the tag KubernetesCluster=blue nor kubernetes.io/cluster/blue with the value owned or " +
				"shared; its KubernetesCluster is none",
		},
		{name: "a machine that the cluster owns", instance: tag("kubernetes.io/cluster/blue", "owned")},
		{name: "a machine that the cluster shares", instance: tag("kubernetes.io/cluster/blue", "shared")},
		{
			name: "another key of the cluster's tag", instance: tag("cluster", "blue"),
			options: func(o *aws.Options) { o.ClusterTag = "cluster" },
		},
		{
			name:   "a request from another machine's address",
			remote: "10.9.9.9", instance: oneAddress("10.2.0.7"),
			code: aws.WrongSourceAddress, detail: "sends from 10.2.0.7; the request came from 10.9.9.9",
		},
		{
			name: "a request from the second interface", remote: "10.2.1.8",
			instance: func(i *fakeaws.Instance) {
				i.Interfaces = []fakeaws.Interface{
					{Private: []netip.Addr{netip.MustParseAddr("10.2.0.9")}},
					{Private: []netip.Addr{netip.MustParseAddr("10.2.1.8"), netip.MustParseAddr("10.2.1.9")}},
				}
			},
		},
		{
			name: "a request from a secondary address, which is a pod's", remote: "10.2.2.8",
			instance: func(i *fakeaws.Instance) {
				i.Interfaces = []fakeaws.Interface{
					{Private: []netip.Addr{netip.MustParseAddr("10.2.2.7"), netip.MustParseAddr("10.2.2.8")}},
				}
			},
			code: aws.WrongSourceAddress, detail: "sends from 10.2.2.7; the request came from 10.2.2.8",
		},
		{
			name: "a request from an IPv6 address", remote: "2001:db8::9",
			instance: func(i *fakeaws.Instance) {
				i.Interfaces = []fakeaws.Interface{{
					Private: []netip.Addr{netip.MustParseAddr("10.2.0.10")}, IPv6: []netip.Addr{netip.MustParseAddr("2001:db8::9")},
				}}
			},
		},
		{
			name: "a request from any address without that check", remote: "10.9.9.9",
			options: func(o *aws.Options) { o.SkipSourceAddress = true },
		},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func TestInstanceProfiles(t *testing.T) {
	s := newFixture(t)
	profiles := func(wanted ...string) func(*aws.Options) {
		return func(o *aws.Options) { o.InstanceProfiles = wanted }
	}
	has := func(arn string) func(*fakeaws.Instance) {
		return func(i *fakeaws.Instance) { i.Profile = arn }
	}
	for _, test := range []check{
		{name: "by name", options: profiles("other", "nodes.blue")},
		{name: "by ARN", options: profiles(nodeProfile)},
		{
			name: "by name, with a path", options: profiles("nodes.blue"),
			instance: has("arn:aws:iam::111122223333:instance-profile/kops/eu/nodes.blue"),
		},
		{
			name: "in another partition", options: profiles("nodes.blue"),
			instance: has("arn:aws-cn:iam::111122223333:instance-profile/nodes.blue"),
		},
		{
			name: "by ARN of another partition", options: profiles("arn:aws-us-gov:iam::111122223333:instance-profile/nodes.blue"),
			code: aws.WrongInstanceProfile, detail: "has the instance profile " + nodeProfile +
				", want arn:aws-us-gov:iam::111122223333:instance-profile/nodes.blue",
		},
		{
			name: "another one", options: profiles("masters.blue"),
			code: aws.WrongInstanceProfile, detail: "has the instance profile " + nodeProfile + ", want masters.blue",
		},
		{
			name: "none", options: profiles("nodes.blue"), instance: has(""),
			code: aws.WrongInstanceProfile, detail: "has the instance profile none, want nodes.blue",
		},
		{
			name: "the name in another account", options: profiles("nodes.blue"),
			instance: has("arn:aws:iam::444455556666:instance-profile/nodes.blue"),
			code:     aws.WrongInstanceProfile, detail: "has the instance profile " +
				"arn:aws:iam::444455556666:instance-profile/nodes.blue, want nodes.blue",
		},
		{
			name: "a role of that name", options: profiles("nodes.blue"),
			instance: has("arn:aws:iam::111122223333:role/nodes.blue"),
			code:     aws.WrongInstanceProfile, detail: "has the instance profile " +
				"arn:aws:iam::111122223333:role/nodes.blue, want nodes.blue",
		},
		{name: "none, if none is required", instance: has("")},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// TestOrderOfChecks fixes a machine that fails all checks, one by one.
func TestOrderOfChecks(t *testing.T) {
	s := newFixture(t)
	foreign, err := fakeaws.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	instance := s.launch(func(i *fakeaws.Instance) {
		i.Account, i.Region, i.VPC = "444455556666", "eu-north-1", "vpc-0ffffffffffffffff"
		i.State, i.Tags, i.Profile = fakeaws.Stopped, nil, ""
	})
	a := s.attestor(t, func(o *aws.Options) {
		o.InstanceProfiles = []string{"nodes.blue"}
		o.CallerIdentity = aws.CallerIdentity{Required: true, Challenger: newChallenges(t)}
	})
	signer := foreign
	for _, step := range []struct {
		code   verdict.Code
		repair func(*fakeaws.Instance)
	}{
		{identitydocument.SignerUnknown, func(*fakeaws.Instance) { signer = s.Signer() }},
		{aws.WrongAccount, func(i *fakeaws.Instance) { i.Account = account }},
		{aws.WrongRegion, func(i *fakeaws.Instance) { i.Region, i.Zone = region, "eu-west-1a" }},
		{aws.InstanceNotRunning, func(i *fakeaws.Instance) { i.State = fakeaws.Running }},
		{aws.WrongVPC, func(i *fakeaws.Instance) { i.VPC = vpc }},
		{aws.WrongCluster, tag("KubernetesCluster", "blue")},
		{aws.WrongInstanceProfile, func(i *fakeaws.Instance) { i.Profile = nodeProfile }},
		{aws.WrongSourceAddress, nil},
	} {
		now, _ := s.Instance(instance.ID)
		req := s.request(t, now)
		req.Body, err = json.Marshal(map[string]any{"Document": []byte(signer.PKCS7(now.Document(), now.Signed()))})
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = netip.MustParseAddr("10.9.9.9")
		_, err := a.Attest(t.Context(), req)
		refused(t, err, step.code)
		if step.repair != nil {
			s.Change(instance.ID, step.repair)
			continue
		}
		req.RemoteAddr = now.Interfaces[0].Private[0]
		_, err = a.Attest(t.Context(), req)
		refused(t, err, aws.CallerIdentityMissing)
	}
}
