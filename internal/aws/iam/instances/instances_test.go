package instances_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/instances"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const (
	account     = fakeaws.DefaultAccount
	nodeProfile = "arn:aws:iam::111122223333:instance-profile/kubernetes/nodes"
	vpc         = "vpc-0123456789abcdef0"
	nodeRole    = "arn:aws:iam::111122223333:role/kubernetes/node"
)

// fixture is a fake AWS, with a clock that the test controls.
type fixture struct {
	*fakeaws.Cloud
	mu  sync.Mutex
	now time.Time
	// observed counts requests by service and outcome.
	observed map[string]int
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
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PROFILE=", "AWS_REGION=",
		"AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1")
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	cloud.SetInstanceProfile(fakeaws.InstanceProfile{ARN: nodeProfile, Roles: []string{nodeRole}})
	return &fixture{Cloud: cloud, now: time.Now(), observed: map[string]int{}}
}

// node launches an instance with the settings of nodes.
func (s *fixture) node() fakeaws.Instance {
	return s.Launch(fakeaws.Instance{Profile: nodeProfile, Role: "node", VPC: vpc})
}

func (s *fixture) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *fixture) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// seen returns the number of requests by service and outcome.
func (s *fixture) seen(service, outcome string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed[service+" "+outcome]
}

// requests returns the number of requests to a service. The SDK may send one more than
// once: if an answer arrives before it has written the whole request, it closes the
// connection.
func (s *fixture) requests(service string) int {
	return s.seen(service, ec2instances.OutcomeAnswered) + s.seen(service,
		ec2instances.OutcomeThrottled) + s.seen(service, ec2instances.OutcomeFailed)
}

func (s *fixture) instances(t *testing.T, change func(*instances.Options)) *instances.Instances {
	t.Helper()
	askIAM, region, err := instances.NewIAM(t.Context(), "eu-west-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	options := instances.Options{
		EC2: s.ec2(t), Region: region, IAM: askIAM, TTL: 2 * time.Minute, Size: 20_000, PerSecond: 1000, Burst: 1000, Now: s.clock,
		Observe: func(outcome string) { s.observe("IAM", outcome) },
	}
	if change != nil {
		change(&options)
	}
	return instances.New(options)
}

// ec2 returns a client of EC2.
func (s *fixture) ec2(t *testing.T) *ec2instances.Client {
	t.Helper()
	client, err := ec2instances.Load(t.Context(), ec2instances.Options{
		PerSecond: 1000, Burst: 1000, TryTimeout: fakeaws.Patience, Now: s.clock,
		Observe: func(outcome string) { s.observe("EC2", outcome) },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *fixture) observe(service, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed[service+" "+outcome]++
}

// found requires that an instance is found.
func found(t *testing.T, of *instances.Instances, id string, withRoles bool) *iam.Instance {
	t.Helper()
	instance, err := of.Instance(t.Context(), id, withRoles)
	if err != nil {
		t.Fatal(err)
	}
	if instance == nil {
		t.Fatalf("no instance %s", id)
	}
	return instance
}

func TestInstanceHasTheFieldsFromAWS(t *testing.T) {
	s := newFixture(t)
	pending := s.Launch(fakeaws.Instance{
		State: fakeaws.Pending, VPC: vpc, Profile: nodeProfile, PrivateDNSName: "IP-10-0-0-9.EU-WEST-1.compute.internal",
	})
	stopped, bare, unnamed := s.node(), s.Launch(fakeaws.Instance{VPC: vpc}), s.node()
	s.Stop(stopped.ID)
	s.Change(unnamed.ID, func(i *fakeaws.Instance) { i.PrivateDNSName = "" })
	ended := s.node()
	s.Terminate(ended.ID)
	node := s.node()
	for _, test := range []struct {
		name      string
		id        string
		withRoles bool
		want      iam.Instance
	}{
		{
			"with the roles of its profile, paths included", node.ID, true,
			iam.Instance{Running: true, VPC: vpc, PrivateDNSName: node.PrivateDNSName, Roles: []string{nodeRole}},
		},
		{
			"without roles if they are not requested", node.ID, false,
			iam.Instance{Running: true, VPC: vpc, PrivateDNSName: node.PrivateDNSName},
		},
		{
			"about to run, with its name in lower case", pending.ID, true,
			iam.Instance{Running: true, VPC: vpc, PrivateDNSName: "ip-10-0-0-9.eu-west-1.compute.internal", Roles: []string{nodeRole}},
		},
		{"stopped", stopped.ID, true, iam.Instance{VPC: vpc, PrivateDNSName: stopped.PrivateDNSName, Roles: []string{nodeRole}}},
		{"terminated, without name, VPC and profile", ended.ID, true, iam.Instance{}},
		{"without a profile", bare.ID, true, iam.Instance{Running: true, VPC: vpc, PrivateDNSName: bare.PrivateDNSName}},
		{"without a name", unnamed.ID, false, iam.Instance{Running: true, VPC: vpc}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.ID, test.want.Account = test.id, account
			got := found(t, s.instances(t, nil), test.id, test.withRoles)
			if got.ID != test.want.ID || got.Account != test.want.Account || got.Running != test.want.Running ||
				got.VPC != test.want.VPC || got.PrivateDNSName != test.want.PrivateDNSName || !slices.Equal(got.Roles, test.want.Roles) {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
}

func TestMissingInstanceIsNil(t *testing.T) {
	s := newFixture(t)
	gone := s.node()
	s.Forget(gone.ID)
	elsewhere := s.Launch(fakeaws.Instance{Region: "us-east-1"})
	others := s.Launch(fakeaws.Instance{Account: "444455556666"})
	of := s.instances(t, nil)
	for name, id := range map[string]string{
		"forgotten": gone.ID, "of another region": elsewhere.ID, "of another account": others.ID,
		"made up": "i-00000000000000000", "of the old form": "i-00000000",
	} {
		if instance, err := of.Instance(t.Context(), id, true); instance != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, instance, err)
		}
	}
}

func TestInvalidIDIsNotLookedUp(t *testing.T) {
	s := newFixture(t)
	of := s.instances(t, nil)
	for _, id := range []string{
		"", "i-", "worker-1", "i-0123456789abcdef", "i-0123456789ABCDEF0", "i-0123456789abcdef0 ", "i-0123456789abcdef0\n",
		"*", "i-*",
	} {
		if instance, err := of.Instance(t.Context(), id, true); instance != nil || err != nil {
			t.Errorf("%q: %+v, %v", id, instance, err)
		}
	}
	if got := s.requests("EC2"); got != 0 {
		t.Errorf("%d requests", got)
	}
}

func TestInstanceIsFoundOnALaterPage(t *testing.T) {
	s := newFixture(t)
	node := s.node()
	s.PrecedeByEmptyPages(2)
	found(t, s.instances(t, nil), node.ID, false)
	if got := s.requests("EC2"); got != 3 {
		t.Errorf("%d requests for three pages", got)
	}
}

func TestUnknownProfileHasNoRoles(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"deleted": func(s *fixture) { s.DeleteInstanceProfile(nodeProfile) },
		"created again": func(s *fixture) {
			s.SetInstanceProfile(fakeaws.InstanceProfile{ARN: nodeProfile, ID: "AIPAANOTHER", Roles: []string{nodeRole}})
		},
		"emptied": func(s *fixture) { s.SetInstanceProfile(fakeaws.InstanceProfile{ARN: nodeProfile}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			node := s.node()
			change(s)
			if got := found(t, s.instances(t, nil), node.ID, true); got.Roles != nil || !got.Running {
				t.Errorf("got %+v", *got)
			}
		})
	}
}

func TestFailuresAreErrors(t *testing.T) {
	for _, test := range []struct {
		name      string
		fault     fakeaws.Fault
		inIAM     bool
		throttled bool
		want      string
	}{
		{"EC2 throttles", fakeaws.Fault{Kind: fakeaws.Throttled}, false, true, "EC2 throttles: "},
		{"EC2 fails", fakeaws.Fault{Kind: fakeaws.Broken}, false, false, "asking EC2 about instance "},
		{"EC2 is down", fakeaws.Fault{Kind: fakeaws.Down}, false, false, "asking EC2 about instance "},
		{"EC2 answers nothing", fakeaws.Fault{Kind: fakeaws.Empty}, false, false, "EC2 answered a request about instance "},
		{
			"EC2 does not allow it",
			fakeaws.Fault{Kind: fakeaws.Forbidden},
			false, false,
			"allow ec2:DescribeInstances to the role of this server",
		},
		{"IAM throttles", fakeaws.Fault{Kind: fakeaws.Throttled}, true, true, "IAM throttles: "},
		{"IAM fails", fakeaws.Fault{Kind: fakeaws.Broken}, true, false, "asking IAM about " + nodeProfile},
		{"IAM is down", fakeaws.Fault{Kind: fakeaws.Down}, true, false, "asking IAM about " + nodeProfile},
		{"IAM answers nothing", fakeaws.Fault{Kind: fakeaws.Empty}, true, false, "IAM answered a request about " + nodeProfile},
		{
			"IAM does not allow it",
			fakeaws.Fault{Kind: fakeaws.Forbidden},
			true, false,
			"allow iam:GetInstanceProfile to the role of this server",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			node, of := s.node(), s.instances(t, nil)
			service, name := s.EC2, "EC2"
			if test.inIAM {
				service, name = s.IAM, "IAM"
			}
			service.Break(test.fault)
			instance, err := of.Instance(t.Context(), node.ID, true)
			var throttled *iam.Throttled
			if instance != nil || err == nil || errors.As(err, &throttled) != test.throttled || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %+v, %v; want an error with %q", instance, err, test.want)
			}
			if test.throttled != (s.seen(name, ec2instances.OutcomeThrottled) == 1) {
				t.Errorf("counted %v", s.observed)
			}
			service.Heal()
			if got := found(t, of, node.ID, true); len(got.Roles) != 1 {
				t.Errorf("recovered: %+v: the failure is cached", *got)
			}
		})
	}
}

func TestRolesWithoutIAMAreAnError(t *testing.T) {
	s := newFixture(t)
	node := s.node()
	of := s.instances(t, func(o *instances.Options) { o.IAM = nil })
	if instance, err := of.Instance(t.Context(), node.ID, true); instance != nil || err == nil {
		t.Errorf("got %+v, %v", instance, err)
	}
	found(t, of, node.ID, false)
}

// EC2 and IAM each return the objects in the account of their credentials.
func TestProfileOfAnotherAccountIsAnError(t *testing.T) {
	s := newFixture(t)
	node := s.node()
	s.SetInstanceProfile(fakeaws.InstanceProfile{
		ARN: "arn:aws:iam::444455556666:instance-profile/nodes", Roles: []string{"arn:aws:iam::444455556666:role/node"},
	})
	ec2 := s.ec2(t)
	otherAccount := s.User("444455556666", "server")
	t.Setenv("AWS_ACCESS_KEY_ID", otherAccount.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", otherAccount.SecretAccessKey)
	of := s.instances(t, func(o *instances.Options) { o.EC2 = ec2 })
	if instance, err := of.Instance(t.Context(), node.ID, true); instance != nil || err == nil ||
		!strings.Contains(err.Error(), "the same account") {
		t.Errorf("got %+v, %v", instance, err)
	}
}

// awaited is a context that says when its end is awaited for the first time, which is after the question was asked.
type awaited struct {
	context.Context
	begun chan struct{}
	once  sync.Once
}

func (a *awaited) Done() <-chan struct{} {
	a.once.Do(func() { close(a.begun) })
	return a.Context.Done()
}

func TestCanceledCallerDoesNotFailOthers(t *testing.T) {
	s := newFixture(t)
	node, of := s.node(), s.instances(t, nil)
	s.EC2.Break(fakeaws.Fault{Kind: fakeaws.Hanging})
	ctx, end := context.WithTimeout(t.Context(), fakeaws.Patience)
	defer end()
	impatient, cancel := context.WithCancel(ctx)
	gaveUp, patient := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := of.Instance(impatient, node.ID, false)
		gaveUp <- err
	}()
	joined := &awaited{Context: ctx, begun: make(chan struct{})}
	go func() {
		_, err := of.Instance(joined, node.ID, false)
		patient <- err
	}()
	fakeaws.Until(t, func() bool { return s.EC2.Requests() == 1 })
	<-joined.begun
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled caller: %v", err)
	}
	s.EC2.Heal()
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if got := s.requests("EC2"); got != 1 {
		t.Errorf("%d requests for one instance", got)
	}
}
