package iam_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	account    = "111122223333"
	nodeRole   = "arn:aws:iam::111122223333:role/node"
	instanceID = "i-0123456789abcdef0"
	vpc        = "vpc-0a1b2c3d4e5f60718"
	nodeName   = "ip-10-0-0-1.eu-west-1.compute.internal"
)

// errDown is the error of an unreachable service.
var errDown = errors.New("connection refused")

// verifier returns the same caller for every token.
type verifier struct {
	caller iam.Caller
	err    error
}

func (v verifier) Verify(context.Context, string) (*iam.Caller, error) {
	if v.err != nil {
		return nil, v.err
	}
	return &v.caller, nil
}

// mapper has mappings by canonical ARNs and accounts.
type mapper struct {
	mappings map[string]iam.Mapping
	err      error
}

func (m mapper) Find(canonical, account string) (iam.Mapping, bool, error) {
	mapping, ok := m.mappings[canonical]
	if !ok {
		mapping, ok = m.mappings[account]
	}
	return mapping, ok, m.err
}

// instances is a fake of EC2 that records requests.
type instances struct {
	known map[string]iam.Instance
	err   error
	asked []string
}

func (i *instances) Instance(_ context.Context, id string, withRoles bool) (*iam.Instance, error) {
	question := id
	if withRoles {
		question += " with roles"
	}
	i.asked = append(i.asked, question)
	instance, ok := i.known[id]
	if i.err != nil || !ok {
		return nil, i.err
	}
	if !withRoles {
		instance.Roles = nil
	}
	return &instance, nil
}

// fixture holds the fakes that an authenticator depends on.
type fixture struct {
	caller    iam.Caller
	verifyErr error
	mapping   iam.Mapping
	findErr   error
	instances *instances
	options   iam.Options
}

// nodes returns a fixture with a running instance whose role is mapped to nodes.
func nodes() *fixture {
	return &fixture{
		caller: sessionOf("node", instanceID),
		mapping: iam.Mapping{
			Kind: iam.RoleMapping, ARN: nodeRole, Username: "system:node:{{EC2PrivateDNSName}}",
			Groups: []string{"system:bootstrappers", "system:nodes"}, Source: "ConfigMap kube-system/aws-auth",
			Place: finding.Place{Object: "ConfigMap kube-system/aws-auth", Key: "data.mapRoles[0]"},
		},
		instances: &instances{known: map[string]iam.Instance{instanceID: {
			ID: instanceID, Account: account, Running: true, VPC: vpc, PrivateDNSName: nodeName,
			Roles: []string{"arn:aws:iam::111122223333:role/teams/a/node"},
		}}},
		options: iam.Options{Reserved: iam.DefaultReserved()},
	}
}

// sessionOf returns a caller with a session of a role.
func sessionOf(role, session string) iam.Caller {
	return iam.Caller{
		ARN: "arn:aws:sts::111122223333:assumed-role/" + role + "/" + session, Account: account,
		UserID: "AROAEXAMPLE0000000001:" + session, AccessKeyID: accessKey,
		NotAfter: time.Date(2026, time.March, 1, 12, 15, 0, 0, time.UTC),
	}
}

// instance changes the instance that EC2 returns.
func (s *fixture) instance(change func(*iam.Instance)) {
	instance := s.instances.known[instanceID]
	change(&instance)
	s.instances.known[instanceID] = instance
}

func (s *fixture) authenticate(t *testing.T) (*iam.User, error) {
	t.Helper()
	o := s.options
	o.Verifier = verifier{s.caller, s.verifyErr}
	if s.instances != nil {
		o.Instances = s.instances
	}
	mappings := map[string]iam.Mapping{s.mapping.Account: s.mapping}
	if s.mapping.ARN != "" {
		canonical, _, err := iam.Canonical(s.mapping.ARN)
		if err != nil {
			t.Fatal(err)
		}
		mappings = map[string]iam.Mapping{canonical: s.mapping}
	}
	o.Mappings = mapper{mappings, s.findErr}
	return iam.NewAuthenticator(o).Authenticate(t.Context(), "the token")
}

// expectRefusal checks that authentication is refused.
func (s *fixture) expectRefusal(t *testing.T, want verdict.Code) {
	t.Helper()
	user, err := s.authenticate(t)
	var refusal *iam.Refusal
	if !errors.As(err, &refusal) || refusal.Code != want || user != nil {
		t.Fatalf("got %+v, %v, want %s", user, err, want)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "%!") {
		t.Errorf("the refusal is %q", err)
	}
}

func TestNodeIsNamedAfterItsInstance(t *testing.T) {
	s := nodes()
	got, err := s.authenticate(t)
	if err != nil {
		t.Fatal(err)
	}
	want := &iam.User{
		Username: "system:node:" + nodeName,
		UID:      "aws-iam-authenticator:111122223333:AROAEXAMPLE0000000001",
		Groups:   []string{"system:bootstrappers", "system:nodes"},
		Extra: map[string][]string{
			"arn":          {"arn:aws:sts::111122223333:assumed-role/node/" + instanceID},
			"canonicalArn": {nodeRole},
			"sessionName":  {instanceID},
			"accessKeyId":  {accessKey},
			"principalId":  {"AROAEXAMPLE0000000001"},
			"sigs.k8s.io/aws-iam-authenticator/principalId": {"AROAEXAMPLE0000000001"},
		},
		NotAfter: s.caller.NotAfter,
		Mapping:  s.mapping,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if want := []string{instanceID + " with roles"}; !reflect.DeepEqual(s.instances.asked, want) {
		t.Errorf("EC2 is asked for %q, want %q", s.instances.asked, want)
	}
}

func TestCallersBecomeUsers(t *testing.T) {
	for _, tc := range []struct {
		rule             string
		caller           iam.Caller
		mapping          iam.Mapping
		username, id     string
		groups           []string
		session, account string
	}{
		{
			rule:   "a user",
			caller: iam.Caller{ARN: "arn:aws:iam::111122223333:user/teams/a/ann", Account: account, UserID: "AIDAEXAMPLE"},
			mapping: iam.Mapping{
				Kind: iam.UserMapping, ARN: "arn:aws:iam::111122223333:user/teams/a/ann", Username: "ann",
				Groups: []string{"admins"},
			},
			username: "ann", id: "AIDAEXAMPLE", groups: []string{"admins"},
		},
		{
			rule:     "root",
			caller:   iam.Caller{ARN: "arn:aws:iam::111122223333:root", Account: account, UserID: account},
			mapping:  iam.Mapping{Kind: iam.UserMapping, ARN: "arn:aws:iam::111122223333:root", Username: "root-of-{{AccountID}}"},
			username: "root-of-111122223333", id: account,
		},
		{
			rule:     "a federated user keeps its whole id",
			caller:   iam.Caller{ARN: "arn:aws:sts::111122223333:federated-user/ann", Account: account, UserID: "111122223333:ann"},
			mapping:  iam.Mapping{Kind: iam.UserMapping, ARN: "arn:aws:sts::111122223333:federated-user/ann", Username: "ann"},
			username: "ann", id: "111122223333:ann",
		},
		{
			rule:   "a session with its name in username and groups",
			caller: sessionOf("admin", "ann@corp.example"),
			mapping: iam.Mapping{
				Kind: iam.RoleMapping, ARN: "arn:aws:iam::111122223333:role/admin",
				Username: "aws:{{AccountID}}:{{SessionName}}",
				Groups:   []string{"of:{{SessionNameRaw}}", "by:{{AccessKeyID}}"},
			},
			username: "aws:111122223333:ann-corp.example", id: "AROAEXAMPLE0000000001", session: "ann@corp.example",
			groups: []string{"of:ann@corp.example", "by:" + accessKey},
		},
		{
			rule:     "any caller of a mapped account, under its canonical ARN and in no group",
			caller:   sessionOf("admin", "ann"),
			mapping:  iam.Mapping{Kind: iam.AccountMapping, Account: account},
			username: "arn:aws:iam::111122223333:role/admin", id: "AROAEXAMPLE0000000001", session: "ann",
		},
		{
			rule:   "a name with a space",
			caller: sessionOf("admin", "ann"),
			mapping: iam.Mapping{
				Kind: iam.RoleMapping, ARN: "arn:aws:iam::111122223333:role/admin", Username: "Ann Lee",
				Groups: []string{"platform team"},
			},
			username: "Ann Lee", id: "AROAEXAMPLE0000000001", session: "ann", groups: []string{"platform team"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			s.caller, s.mapping, s.instances = tc.caller, tc.mapping, nil
			got, err := s.authenticate(t)
			if err != nil {
				t.Fatal(err)
			}
			if got.Username != tc.username || strings.Join(got.Groups, ";") != strings.Join(tc.groups, ";") {
				t.Errorf("got %q in %q", got.Username, got.Groups)
			}
			if got.UID != "aws-iam-authenticator:111122223333:"+tc.id || got.Extra["principalId"][0] != tc.id ||
				got.Extra["sessionName"][0] != tc.session {
				t.Errorf("got %q, %q", got.UID, got.Extra)
			}
		})
	}
}

// TestIDsOfCallersDiffer has callers in one account whose ids share a part.
func TestIDsOfCallersDiffer(t *testing.T) {
	ids := map[string]string{}
	for _, caller := range []iam.Caller{
		{ARN: "arn:aws:iam::111122223333:root", Account: account, UserID: "111122223333"},
		{ARN: "arn:aws:sts::111122223333:federated-user/ann", Account: account, UserID: "111122223333:ann"},
		{ARN: "arn:aws:sts::111122223333:federated-user/bob", Account: account, UserID: "111122223333:bob"},
		{ARN: "arn:aws:iam::111122223333:user/ann", Account: account, UserID: "AIDAEXAMPLE"},
	} {
		s := nodes()
		s.caller, s.mapping = caller, iam.Mapping{Kind: iam.UserMapping, ARN: caller.ARN, Username: "someone"}
		user, err := s.authenticate(t)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := ids[user.UID]; taken {
			t.Errorf("%s and %s have the id %s", caller.ARN, other, user.UID)
		}
		ids[user.UID] = caller.ARN
	}
}

func TestInconsistentAnswerOfSTSIsRefused(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*iam.Caller)
		want   verdict.Code
	}{
		{"no ARN", func(c *iam.Caller) { c.ARN = "" }, iam.CallerMalformed},
		{"not an ARN", func(c *iam.Caller) { c.ARN = "node" }, iam.CallerMalformed},
		{"no id", func(c *iam.Caller) { c.UserID = "" }, iam.CallerMalformed},
		{"an id without a session", func(c *iam.Caller) { c.UserID = "AROAEXAMPLE0000000001" }, iam.CallerMalformed},
		{"an id without a role", func(c *iam.Caller) { c.UserID = ":" + instanceID }, iam.CallerMalformed},
		{"an id of another session", func(c *iam.Caller) { c.UserID = "AROAEXAMPLE0000000001:i-0fedcba9876543210" }, iam.CallerMalformed},
		{"an id of three parts", func(c *iam.Caller) { c.UserID += ":x" }, iam.CallerMalformed},
		{"a user with the id of a session", func(c *iam.Caller) { c.ARN = "arn:aws:iam::111122223333:user/ann" }, iam.CallerMalformed},
		{"a federated user with the id of root", func(c *iam.Caller) {
			c.ARN, c.UserID = "arn:aws:sts::111122223333:federated-user/ann", account
		}, iam.CallerMalformed},
		{"a federated user with the id of another", func(c *iam.Caller) {
			c.ARN, c.UserID = "arn:aws:sts::111122223333:federated-user/ann", account+":bob"
		}, iam.CallerMalformed},
		{"an unsupported kind of caller", func(c *iam.Caller) { c.ARN = "arn:aws:sts::111122223333:self" }, iam.CallerNotSupported},
		{"another service", func(c *iam.Caller) { c.ARN = "arn:aws:ec2::111122223333:instance/" + instanceID }, iam.CallerNotSupported},
		{"another account", func(c *iam.Caller) { c.Account = "444455556666" }, iam.AccountMismatch},
		{"no account", func(c *iam.Caller) { c.Account = "" }, iam.AccountMismatch},
		{
			"another partition", func(c *iam.Caller) { c.ARN = strings.Replace(c.ARN, "arn:aws:", "arn:aws-cn:", 1) },
			iam.CallerOtherPartition,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			tc.change(&s.caller)
			s.expectRefusal(t, tc.want)
		})
	}
}

func TestOnePartitionIsServed(t *testing.T) {
	s := nodes()
	s.options.Partition = "aws-cn"
	s.expectRefusal(t, iam.CallerOtherPartition)

	s.caller.ARN = strings.Replace(s.caller.ARN, "arn:aws:", "arn:aws-cn:", 1)
	s.mapping.ARN = strings.Replace(s.mapping.ARN, "arn:aws:", "arn:aws-cn:", 1)
	s.expectRefusal(t, iam.SessionRoleMismatch) // the role is still the commercial one
	s.instance(func(i *iam.Instance) { i.Roles = []string{s.mapping.ARN} })
	if _, err := s.authenticate(t); err != nil {
		t.Error(err)
	}
}

func TestUnmappedCallerIsRefused(t *testing.T) {
	s := nodes()
	s.mapping.ARN = "arn:aws:iam::111122223333:role/other"
	s.expectRefusal(t, iam.NotMapped)
	s.mapping = iam.Mapping{Kind: iam.AccountMapping, Account: "444455556666"}
	s.expectRefusal(t, iam.NotMapped)
}

func TestUnusableMappingIsRefused(t *testing.T) {
	s := nodes()
	s.mapping = iam.Mapping{Kind: iam.RoleMapping, ARN: s.mapping.ARN, Unusable: true, Place: s.mapping.Place}
	s.expectRefusal(t, iam.MappingUnusable)
}

// TestFailedLookupIsNoRefusal: an error says nothing about the bearer.
func TestFailedLookupIsNoRefusal(t *testing.T) {
	throttled := &iam.Throttled{Service: "EC2", Detail: "RequestLimitExceeded"}
	for _, tc := range []struct {
		rule   string
		change func(*fixture)
		cause  error
	}{
		{"STS does not answer", func(s *fixture) { s.verifyErr = errDown }, errDown},
		{"STS throttles", func(s *fixture) { s.verifyErr = throttled }, throttled},
		{"the mappings have not been read", func(s *fixture) { s.findErr = errDown }, errDown},
		{"the mappings have not been read, and none is found", func(s *fixture) {
			s.findErr, s.mapping.ARN = errDown, "arn:aws:iam::111122223333:role/other"
		}, errDown},
		{"EC2 does not answer", func(s *fixture) { s.instances.err = errDown }, errDown},
		{"EC2 throttles", func(s *fixture) { s.instances.err = throttled }, throttled},
		{"EC2 does not answer the check", func(s *fixture) {
			s.mapping.Username, s.instances.err = "system:node:{{SessionName}}", errDown
		}, errDown},
		{"EC2 is not configured", func(s *fixture) { s.instances = nil }, nil},
		{"EC2 is not configured for the check", func(s *fixture) {
			s.mapping.Username, s.instances = "system:node:{{SessionName}}", nil
		}, nil},
		{"EC2 answers about another instance", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.ID = "i-0fedcba9876543210" })
		}, nil},
		{"a mapping with an invalid template", func(s *fixture) { s.mapping.Username = "system:node:{{ SessionName }}" }, nil},
		{"a mapping with an invalid group", func(s *fixture) { s.mapping.Groups = []string{"{{Team}}"} }, nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			tc.change(s)
			user, err := s.authenticate(t)
			var refusal *iam.Refusal
			if err == nil || user != nil || errors.As(err, &refusal) {
				t.Fatalf("got %+v, %v", user, err)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("the error does not wrap its cause: %v", err)
			}
		})
	}
}

func TestRefusalOfTheVerifierIsReturned(t *testing.T) {
	s := nodes()
	s.verifyErr = iam.Refuse(iam.STSRefused, "STS rejects the token: SignatureDoesNotMatch")
	s.expectRefusal(t, iam.STSRefused)
}

// callerTracker records the callers that were authenticated.
type callerTracker struct {
	verifier
	authenticated []string
}

func (c *callerTracker) Authenticated(accessKeyID string) {
	c.authenticated = append(c.authenticated, accessKeyID)
}

// TestOnlyAuthenticatedCallersBecomeKnown: otherwise unknown callers would get the slots
// that are reserved for known callers.
func TestOnlyAuthenticatedCallersBecomeKnown(t *testing.T) {
	for _, tc := range []struct {
		name   string
		caller iam.Caller
		err    error
		want   []string
	}{
		{"a node", sessionOf("node", instanceID), nil, []string{accessKey}},
		{"a caller without a mapping", sessionOf("other", instanceID), nil, nil},
		{"a caller whose session is refused", sessionOf("node", "ann"), nil, nil},
		{"a caller that STS refuses", sessionOf("node", instanceID), iam.Refuse(iam.STSRefused, "no"), nil},
		{"a caller while STS is unreachable", sessionOf("node", instanceID), errDown, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := nodes()
			o := s.options
			tracker := &callerTracker{verifier: verifier{tc.caller, tc.err}}
			o.Verifier, o.Instances, o.Mappings = tracker, s.instances, mapper{map[string]iam.Mapping{nodeRole: s.mapping}, nil}
			user, err := iam.NewAuthenticator(o).Authenticate(t.Context(), "the token")
			if (user != nil) != (tc.want != nil) || (err == nil) != (tc.want != nil) || !slices.Equal(tracker.authenticated, tc.want) {
				t.Errorf("authenticated %q, want %q: %v, %v", tracker.authenticated, tc.want, user, err)
			}
		})
	}
}
