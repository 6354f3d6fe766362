package iam_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestCallerCannotImpersonateAnotherNode: the caller may assume the role of nodes, or a
// mapped role, and names the session after an instance.
func TestCallerCannotImpersonateAnotherNode(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*fixture)
		want   verdict.Code
	}{
		{"an instance with another role", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/other"} })
		}, iam.SessionRoleMismatch},
		{"an instance without a profile", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = nil })
		}, iam.SessionRoleMismatch},
		{"a role of that name in another account", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::444455556666:role/node"} })
		}, iam.SessionRoleMismatch},
		{"a role whose name ends like it", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/a-node"} })
		}, iam.SessionRoleMismatch},
		{"a role whose path has the same name", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/node/other"} })
		}, iam.SessionRoleMismatch},
		{"a profile with the name of the role", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:instance-profile/node"} })
		}, iam.SessionRoleMismatch},
		{"a role that is not an ARN", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"node"} })
		}, iam.SessionRoleMismatch},
		{"an instance of another account", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Account = "444455556666" })
		}, iam.SessionAccountMismatch},
		{"an instance without an account", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Account = "" })
		}, iam.SessionAccountMismatch},
		{"a terminated instance", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.Running = false })
		}, iam.SessionInstanceEnded},
		{
			"an instance that does not exist", func(s *fixture) { s.caller = sessionOf("node", "i-0fedcba9876543210") },
			iam.SessionInstanceUnknown,
		},
		{
			"an instance with an old id that does not exist",
			func(s *fixture) { s.caller = sessionOf("node", "i-01234567") }, iam.SessionInstanceUnknown,
		},
		{"no instance", func(s *fixture) { s.caller = sessionOf("node", "ann") }, iam.SessionNotInstance},
		{"the name of a node", func(s *fixture) { s.caller = sessionOf("node", nodeName) }, iam.SessionNotInstance},
		{"an id of the wrong length", func(s *fixture) { s.caller = sessionOf("node", "i-0123456789abcdef") }, iam.SessionNotInstance},
		{
			"an id with letters that are no digits",
			func(s *fixture) { s.caller = sessionOf("node", "i-0123456789abcdefg") }, iam.SessionNotInstance,
		},
		{"an id in upper case", func(s *fixture) { s.caller = sessionOf("node", "i-0123456789ABCDEF0") }, iam.SessionNotInstance},
		{
			"a managed instance that is not in EC2",
			func(s *fixture) { s.caller = sessionOf("node", "mi-0123456789abcdef0") }, iam.SessionNotInstance,
		},
		{"a user, who has no session", func(s *fixture) {
			s.caller = iam.Caller{ARN: "arn:aws:iam::111122223333:user/ann", Account: account, UserID: "AIDAEXAMPLE"}
			s.mapping.ARN = s.caller.ARN
		}, iam.SessionMissing},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, username := range []string{
				"system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}", "system:node:{{SessionNameRaw}}",
			} {
				s := nodes()
				tc.change(s)
				s.mapping.Username = username
				s.expectRefusal(t, tc.want)
			}
		})
	}
}

// TestEveryUseOfTheSessionIsChecked: the result decides whether the user is a node.
func TestEveryUseOfTheSessionIsChecked(t *testing.T) {
	for _, tc := range []struct {
		rule, username, group, session string
	}{
		{"the name of a node from two parts", "system:{{SessionName}}:worker-1", "system:nodes", "node"},
		{"a part of the name", "system:node:{{AccountID}}-{{SessionName}}", "system:nodes", "worker-1"},
		{"a group of a node with a fixed name", "system:node:worker-1", "of-{{SessionName}}", "ann"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			s.caller = sessionOf("node", tc.session)
			s.mapping.Username, s.mapping.Groups = tc.username, []string{tc.group}
			s.expectRefusal(t, iam.SessionNotInstance)
		})
	}
}

func TestSessionCheck(t *testing.T) {
	stolen := func(s *fixture) { s.instance(func(i *iam.Instance) { i.Roles = nil }) }
	ended := func(s *fixture) { s.instance(func(i *iam.Instance) { i.Running = false }) }
	freely := func(s *fixture) {
		s.caller, s.mapping.Username = sessionOf("node", "worker-1"), "system:node:{{SessionName}}"
	}
	exempt := func(role string) func(*fixture) {
		return func(s *fixture) {
			s.options.SessionCheckExempt = []string{"arn:aws:iam::444455556666:role/other", role}
		}
	}
	check := func(c iam.SessionCheck) func(*fixture) { return func(s *fixture) { s.options.SessionCheck = c } }
	for _, tc := range []struct {
		rule   string
		change []func(*fixture)
		want   verdict.Code
		asked  []string
	}{
		{"checks the role by default", []func(*fixture){stolen}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{
			"checks the role",
			[]func(*fixture){check(iam.CheckInstanceProfile), stolen},
			iam.SessionRoleMismatch,
			[]string{instanceID + " with roles"},
		},
		{
			"an unknown value checks everything",
			[]func(*fixture){check("Instances"), stolen},
			iam.SessionRoleMismatch,
			[]string{instanceID + " with roles"},
		},
		{"can skip the role", []func(*fixture){check(iam.CheckInstance), stolen}, "", []string{instanceID}},
		{
			"without the role, requires a running instance",
			[]func(*fixture){check(iam.CheckInstance), ended},
			iam.SessionInstanceEnded,
			[]string{instanceID},
		},
		{"without the role, requires an instance", []func(*fixture){check(iam.CheckInstance), freely}, iam.SessionNotInstance, nil},
		{"can be turned off", []func(*fixture){check(iam.NoSessionCheck), ended}, "", []string{instanceID}},
		{"turned off, sends no request to EC2", []func(*fixture){check(iam.NoSessionCheck), freely}, "", nil},
		{"skips an exempt role", []func(*fixture){exempt(nodeRole), freely}, "", nil},
		{"skips an exempt role with any path", []func(*fixture){exempt("arn:aws:iam::111122223333:role/eks/node"), freely}, "", nil},
		{
			"checks an exempt role whose mapping uses the instance",
			[]func(*fixture){exempt(nodeRole), stolen},
			iam.SessionRoleMismatch,
			[]string{instanceID + " with roles"},
		},
		{"checks an exempt role with a group that uses the instance", []func(*fixture){exempt(nodeRole), stolen, func(s *fixture) {
			s.mapping.Username, s.mapping.Groups = "system:node:{{SessionName}}", []string{"of-{{EC2PrivateDNSName}}"}
		}}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{
			"checks an exempt role whose mapping uses a terminated instance",
			[]func(*fixture){exempt(nodeRole), ended},
			iam.SessionInstanceEnded,
			[]string{instanceID + " with roles"},
		},
		{
			"checks a role of another account than the exempt one",
			[]func(*fixture){exempt("arn:aws:iam::444455556666:role/node"), freely},
			iam.SessionNotInstance, nil,
		},
		{
			"checks a role with a prefix of the exempt name",
			[]func(*fixture){exempt("arn:aws:iam::111122223333:role/nod"), freely},
			iam.SessionNotInstance, nil,
		},
		{"checks all roles if the exempt ARN is invalid", []func(*fixture){exempt("node"), freely}, iam.SessionNotInstance, nil},
		{
			"checks a role if a user of that name is exempt",
			[]func(*fixture){exempt("arn:aws:iam::111122223333:user/node"), freely},
			iam.SessionNotInstance, nil,
		},
		{
			"skips users that are not nodes",
			[]func(*fixture){freely, func(s *fixture) { s.mapping.Username = "aws:{{SessionName}}" }},
			"", nil,
		},
		{
			"skips a node with a fixed name",
			[]func(*fixture){freely, func(s *fixture) { s.mapping.Username = "system:node:worker-1" }},
			"", nil,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			for _, change := range tc.change {
				change(s)
			}
			if tc.want != "" {
				s.expectRefusal(t, tc.want)
			} else if _, err := s.authenticate(t); err != nil {
				t.Error(err)
			}
			if !slices.Equal(s.instances.asked, tc.asked) {
				t.Errorf("EC2 is asked for %q, want %q", s.instances.asked, tc.asked)
			}
		})
	}
}

// TestNodesAreInTheirVPCs: another VPC can have an instance with the same private DNS
// name.
func TestNodesAreInTheirVPCs(t *testing.T) {
	const other = "vpc-0ffffffffffffffff"
	const byName, bySession = "system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}"
	in := func(vpc string) func(*fixture) {
		return func(s *fixture) { s.instance(func(i *iam.Instance) { i.VPC = vpc }) }
	}
	check := func(c iam.SessionCheck) func(*fixture) { return func(s *fixture) { s.options.SessionCheck = c } }
	group := func(g string) func(*fixture) { return func(s *fixture) { s.mapping.Groups = []string{g} } }
	instance := func(change func(*iam.Instance)) func(*fixture) { return func(s *fixture) { s.instance(change) } }
	exempt := func(s *fixture) { s.options.SessionCheckExempt = []string{nodeRole} }
	for _, tc := range []struct {
		rule, username string
		vpcs           []string
		change         []func(*fixture)
		want           verdict.Code
	}{
		{"any, if none is named", byName, nil, []func(*fixture){in(other)}, ""},
		{"the one that is named", byName, []string{vpc}, nil, ""},
		{"one of those that are named", byName, []string{other, vpc}, nil, ""},
		{"another one", byName, []string{vpc}, []func(*fixture){in(other)}, iam.SessionOtherVPC},
		{"one that begins like it", byName, []string{vpc}, []func(*fixture){in(vpc[:12])}, iam.SessionOtherVPC},
		{"none", byName, []string{vpc}, []func(*fixture){in("")}, iam.SessionOtherVPC},
		{"another one, by the name of the session", bySession, []string{vpc}, []func(*fixture){in(other)}, iam.SessionOtherVPC},
		{
			"another one, in a group of a node with a fixed name", "system:node:worker-1",
			[]string{vpc},
			[]func(*fixture){in(other), group("of-{{SessionName}}")},
			iam.SessionOtherVPC,
		},
		{
			"another one, without the role", byName,
			[]string{vpc},
			[]func(*fixture){in(other), check(iam.CheckInstance)},
			iam.SessionOtherVPC,
		},
		{
			"another one, without a check of the session", byName,
			[]string{vpc},
			[]func(*fixture){in(other), check(iam.NoSessionCheck)},
			iam.SessionOtherVPC,
		},
		{"the one that is named, without a check of the session", byName, []string{vpc}, []func(*fixture){check(iam.NoSessionCheck)}, ""},
		{"another one, of an exempt role", byName, []string{vpc}, []func(*fixture){in(other), exempt}, iam.SessionOtherVPC},
		{"another one, if only the resolved templates show a node", "{{EC2PrivateDNSName}}", []string{vpc}, []func(*fixture){
			in(other), check(iam.NoSessionCheck), instance(func(i *iam.Instance) { i.PrivateDNSName = "system:node:worker-1" }),
		}, iam.SessionOtherVPC},
		{
			"another one, without a look-up of the instance", bySession,
			[]string{vpc},
			[]func(*fixture){in(other), check(iam.NoSessionCheck)},
			"",
		},
		{"another one, of an exempt role without a look-up", bySession, []string{vpc}, []func(*fixture){in(other), exempt}, ""},
		{"another one, of a user that is not a node", "machine:{{EC2PrivateDNSName}}", []string{vpc}, []func(*fixture){in(other)}, ""},
		{"none, of a terminated instance", byName, []string{vpc}, []func(*fixture){
			instance(func(i *iam.Instance) { i.VPC, i.PrivateDNSName, i.Running = "", "", false }),
		}, iam.SessionInstanceEnded},
		{"another one, in another account", byName, []string{vpc}, []func(*fixture){
			in(other), instance(func(i *iam.Instance) { i.Account = "444455556666" }),
		}, iam.SessionAccountMismatch},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			s.mapping.Username, s.options.VPCs = tc.username, tc.vpcs
			for _, change := range tc.change {
				change(s)
			}
			if tc.want != "" {
				s.expectRefusal(t, tc.want)
			} else if _, err := s.authenticate(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// byName finds mappings by the names of their roles.
type byName struct{ *iam.Mappings }

func (m byName) Find(canonical, account string) (iam.Mapping, bool, error) {
	mapping, ok := m.Mappings.Find(canonical, account, iam.MatchName)
	return mapping, ok, nil
}

// TestMappedPathIsThatOfTheInstancesRole: STS omits paths. A caller that may create roles
// under one path could create a role with the name of one that is mapped under another
// path. IAM returns the path of an instance's role.
func TestMappedPathIsThatOfTheInstancesRole(t *testing.T) {
	for _, tc := range []struct {
		rule, mapped, has string
		taken             bool
	}{
		{"the same path", "arn:aws:iam::111122223333:role/good/node", "arn:aws:iam::111122223333:role/good/node", true},
		{"the same path in other letters", "arn:aws:iam::111122223333:Role/Good/Node", "arn:aws:iam::111122223333:role/good/node", true},
		{"another path", "arn:aws:iam::111122223333:role/good/node", "arn:aws:iam::111122223333:role/evil/node", false},
		{"no path", "arn:aws:iam::111122223333:role/good/node", "arn:aws:iam::111122223333:role/node", false},
		{"any path where none is mapped", "arn:aws:iam::111122223333:role/node", "arn:aws:iam::111122223333:role/evil/node", true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			s.instance(func(i *iam.Instance) { i.Roles = []string{tc.has} })
			s.mapping.ARN = tc.mapped
			mappings, _ := iam.Collect([]iam.Mapping{s.mapping})
			o := s.options
			o.Verifier, o.Instances, o.Mappings = verifier{s.caller, nil}, s.instances, byName{mappings}
			_, err := iam.NewAuthenticator(o).Authenticate(t.Context(), "the token")
			refusal := new(iam.Refusal)
			if tc.taken && err != nil || !tc.taken && (!errors.As(err, &refusal) || refusal.Code != iam.SessionRoleMismatch) {
				t.Error(err)
			}
		})
	}
}

// TestNodeIsCheckedAfterTemplatesAreResolved has a username that turns out to be a node's
// after the templates are resolved.
func TestNodeIsCheckedAfterTemplatesAreResolved(t *testing.T) {
	s := nodes()
	s.mapping.Username = "{{EC2PrivateDNSName}}"
	s.instance(func(i *iam.Instance) { i.PrivateDNSName = "system:node:worker-1" })
	if _, err := s.authenticate(t); err != nil {
		t.Error(err)
	}
	if want := []string{instanceID, instanceID + " with roles"}; !slices.Equal(s.instances.asked, want) {
		t.Errorf("EC2 is asked for %q, want %q", s.instances.asked, want)
	}
	s.instance(func(i *iam.Instance) { i.Roles = nil })
	s.expectRefusal(t, iam.SessionRoleMismatch)
}

func TestInvalidNamesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*fixture)
		want   verdict.Code
	}{
		{"an empty username", func(s *fixture) { s.mapping.Username = "" }, iam.NameEmpty},
		{"an empty group", func(s *fixture) { s.mapping.Groups = []string{"system:nodes", ""} }, iam.NameEmpty},
		{"an instance without a name", func(s *fixture) { s.instance(func(i *iam.Instance) { i.PrivateDNSName = "" }) }, iam.NameEmpty},
		{"an instance without a name, with a suffix in the username", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.PrivateDNSName = "" })
			s.mapping.Username += ".example"
		}, iam.NameEmpty},
		{"the prefix of nodes alone", func(s *fixture) { s.mapping.Username = "system:node:" }, iam.NameEmpty},
		{"a name that no Node can have", func(s *fixture) { s.mapping.Username = "system:node:Worker_1" }, iam.NameInvalid},
		{"two names, as with several domains in DHCP options", func(s *fixture) {
			s.instance(func(i *iam.Instance) { i.PrivateDNSName = "ip-10-0-0-1.a.example b.example" })
		}, iam.NameInvalid},
		{"a name with a path", func(s *fixture) { s.mapping.Username = "system:node:../worker-1" }, iam.NameInvalid},
		{"a node within a node", func(s *fixture) { s.mapping.Username = "system:node:system:node:worker-1" }, iam.NameInvalid},
		{"a line break", func(s *fixture) { s.mapping.Username = "ann\nbob" }, iam.NameInvalid},
		{"a zero-width character", func(s *fixture) { s.mapping.Username = "an\u200bn" }, iam.NameInvalid},
		{"a right-to-left override", func(s *fixture) { s.mapping.Groups = []string{"a\u202eb"} }, iam.NameInvalid},
		{"invalid UTF-8", func(s *fixture) { s.mapping.Username = "ann\xff" }, iam.NameInvalid},
		{"the API server's name in pods", func(s *fixture) { s.mapping.Username = "system:node:kubernetes.default.svc" }, iam.NameReserved},
		{"the machine itself", func(s *fixture) { s.mapping.Username = "system:node:localhost" }, iam.NameReserved},
		{"a part of the control plane", func(s *fixture) { s.mapping.Username = "system:kube-controller-manager" }, iam.NameReserved},
		{"a service account", func(s *fixture) { s.mapping.Username = "system:serviceaccount:shop:web" }, iam.NameReserved},
		{"a group of the control plane", func(s *fixture) { s.mapping.Groups = []string{"system:monitoring"} }, iam.NameReserved},
		{"a service account named after the session", func(s *fixture) {
			s.caller = sessionOf("node", "web")
			s.mapping.Username = "system:serviceaccount:shop:{{SessionName}}"
		}, iam.NameReserved},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			tc.change(s)
			s.expectRefusal(t, tc.want)
		})
	}
}

// TestExemptSessionCannotHaveTheNameOfAService has a role that is exempt from the check,
// so that its callers choose the name of the node.
func TestExemptSessionCannotHaveTheNameOfAService(t *testing.T) {
	for session, want := range map[string]verdict.Code{
		"kubernetes.default": iam.NameReserved,
		"web.shop.svc":       iam.NameReserved,
		"Worker-1":           iam.NameInvalid,
		"worker=1":           iam.NameInvalid,
	} {
		s := nodes()
		s.options.SessionCheckExempt = []string{nodeRole}
		s.caller, s.mapping.Username = sessionOf("node", session), "system:node:{{SessionName}}"
		s.expectRefusal(t, want)
	}
}
