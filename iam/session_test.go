package iam_test

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestNobodyPosesAsAnotherNode has somebody who may assume the role of nodes, or a
// role that is mapped as it is, and names the session after an instance.
func TestNobodyPosesAsAnotherNode(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*scene)
		want   verdict.Code
	}{
		{"an instance with another role", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/other"} })
		}, iam.SessionRoleMismatch},
		{"an instance without a profile", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = nil })
		}, iam.SessionRoleMismatch},
		{"a role of that name in another account", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::444455556666:role/node"} })
		}, iam.SessionRoleMismatch},
		{"a role whose name ends like it", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/a-node"} })
		}, iam.SessionRoleMismatch},
		{"a role whose path is called like it", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:role/node/other"} })
		}, iam.SessionRoleMismatch},
		{"a profile that is called like the role", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"arn:aws:iam::111122223333:instance-profile/node"} })
		}, iam.SessionRoleMismatch},
		{"a role that is not an ARN", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Roles = []string{"node"} })
		}, iam.SessionRoleMismatch},
		{"an instance of another account", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Account = "444455556666" })
		}, iam.SessionAccountMismatch},
		{"an instance of no account", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Account = "" })
		}, iam.SessionAccountMismatch},
		{"an instance that has ended", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.Running = false })
		}, iam.SessionInstanceEnded},
		{"an instance that there is not", func(s *scene) { s.caller = sessionOf("node", "i-0fedcba9876543210") }, iam.SessionInstanceUnknown},
		{"an instance with an old id that there is not", func(s *scene) { s.caller = sessionOf("node", "i-01234567") }, iam.SessionInstanceUnknown},
		{"no instance", func(s *scene) { s.caller = sessionOf("node", "ann") }, iam.SessionNotInstance},
		{"the name of a node", func(s *scene) { s.caller = sessionOf("node", nodeName) }, iam.SessionNotInstance},
		{"an id of the wrong length", func(s *scene) { s.caller = sessionOf("node", "i-0123456789abcdef") }, iam.SessionNotInstance},
		{"an id with letters that are no digits", func(s *scene) { s.caller = sessionOf("node", "i-0123456789abcdefg") }, iam.SessionNotInstance},
		{"an id in upper case", func(s *scene) { s.caller = sessionOf("node", "i-0123456789ABCDEF0") }, iam.SessionNotInstance},
		{"a managed instance that is not in EC2", func(s *scene) { s.caller = sessionOf("node", "mi-0123456789abcdef0") }, iam.SessionNotInstance},
		{"a user, who has no session", func(s *scene) {
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

// TestAnyPartOfTheSessionIsChecked: it is the result that makes a node.
func TestAnyPartOfTheSessionIsChecked(t *testing.T) {
	for _, tc := range []struct {
		rule, username, group, session string
	}{
		{"the name of a node put together", "system:{{SessionName}}:worker-1", "system:nodes", "node"},
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

func TestTheCheckOfSessions(t *testing.T) {
	stolen := func(s *scene) { s.instance(func(i *iam.Instance) { i.Roles = nil }) }
	ended := func(s *scene) { s.instance(func(i *iam.Instance) { i.Running = false }) }
	freely := func(s *scene) {
		s.caller, s.mapping.Username = sessionOf("node", "worker-1"), "system:node:{{SessionName}}"
	}
	exempt := func(role string) func(*scene) {
		return func(s *scene) { s.options.SessionCheckExempt = []string{"arn:aws:iam::444455556666:role/other", role} }
	}
	check := func(c iam.SessionCheck) func(*scene) { return func(s *scene) { s.options.SessionCheck = c } }
	for _, tc := range []struct {
		rule   string
		change []func(*scene)
		want   verdict.Code
		asked  []string
	}{
		{"by default asks for the role", []func(*scene){stolen}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{"asks for the role", []func(*scene){check(iam.CheckInstanceProfile), stolen}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{"asks for all there is if it is not known", []func(*scene){check("Instances"), stolen}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{"can leave the role out", []func(*scene){check(iam.CheckInstance), stolen}, "", []string{instanceID}},
		{"without the role, asks for an instance that runs", []func(*scene){check(iam.CheckInstance), ended}, iam.SessionInstanceEnded, []string{instanceID}},
		{"without the role, asks for an instance", []func(*scene){check(iam.CheckInstance), freely}, iam.SessionNotInstance, nil},
		{"can be left out", []func(*scene){check(iam.NoSessionCheck), ended}, "", []string{instanceID}},
		{"left out, does not ask EC2 for what is not needed", []func(*scene){check(iam.NoSessionCheck), freely}, "", nil},
		{"is not of a role that is exempt", []func(*scene){exempt(nodeRole), freely}, "", nil},
		{"is not of a role that is exempt, whatever its path", []func(*scene){exempt("arn:aws:iam::111122223333:role/eks/node"), freely}, "", nil},
		{"is of a role of another account than the exempt one", []func(*scene){exempt("arn:aws:iam::444455556666:role/node"), freely}, iam.SessionNotInstance, nil},
		{"is of a role that begins like the exempt one", []func(*scene){exempt("arn:aws:iam::111122223333:role/nod"), freely}, iam.SessionNotInstance, nil},
		{"is of all roles if what is exempt is no ARN", []func(*scene){exempt("node"), freely}, iam.SessionNotInstance, nil},
		{"is of a role if a user of that name is exempt", []func(*scene){exempt("arn:aws:iam::111122223333:user/node"), freely}, iam.SessionNotInstance, nil},
		{"does not ask about people", []func(*scene){freely, func(s *scene) { s.mapping.Username = "aws:{{SessionName}}" }}, "", nil},
		{"does not ask about a node with a fixed name", []func(*scene){freely, func(s *scene) { s.mapping.Username = "system:node:worker-1" }}, "", nil},
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

// TestANodeThatIsClearLateIsCheckedWithItsRole has a username that is a node's only
// once the templates are filled in.
func TestANodeThatIsClearLateIsCheckedWithItsRole(t *testing.T) {
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

func TestNamesThatNoMappingGives(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*scene)
		want   verdict.Code
	}{
		{"an empty username", func(s *scene) { s.mapping.Username = "" }, iam.NameEmpty},
		{"an empty group", func(s *scene) { s.mapping.Groups = []string{"system:nodes", ""} }, iam.NameEmpty},
		{"an instance without a name", func(s *scene) { s.instance(func(i *iam.Instance) { i.PrivateDNSName = "" }) }, iam.NameEmpty},
		{"an instance without a name, with more in the username", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.PrivateDNSName = "" })
			s.mapping.Username += ".example"
		}, iam.NameEmpty},
		{"the prefix of nodes alone", func(s *scene) { s.mapping.Username = "system:node:" }, iam.NameEmpty},
		{"a name that no Node can have", func(s *scene) { s.mapping.Username = "system:node:Worker_1" }, iam.NameInvalid},
		{"two names in one, as of several domains in DHCP options", func(s *scene) {
			s.instance(func(i *iam.Instance) { i.PrivateDNSName = "ip-10-0-0-1.a.example b.example" })
		}, iam.NameInvalid},
		{"a name with a path", func(s *scene) { s.mapping.Username = "system:node:../worker-1" }, iam.NameInvalid},
		{"a node within a node", func(s *scene) { s.mapping.Username = "system:node:system:node:worker-1" }, iam.NameInvalid},
		{"a line break", func(s *scene) { s.mapping.Username = "ann\nbob" }, iam.NameInvalid},
		{"a character without width", func(s *scene) { s.mapping.Username = "an\u200bn" }, iam.NameInvalid},
		{"a character that turns the writing round", func(s *scene) { s.mapping.Groups = []string{"a\u202eb"} }, iam.NameInvalid},
		{"invalid UTF-8", func(s *scene) { s.mapping.Username = "ann\xff" }, iam.NameInvalid},
		{"the API server's name in pods", func(s *scene) { s.mapping.Username = "system:node:kubernetes.default.svc" }, iam.NameReserved},
		{"the machine itself", func(s *scene) { s.mapping.Username = "system:node:localhost" }, iam.NameReserved},
		{"a part of the control plane", func(s *scene) { s.mapping.Username = "system:kube-controller-manager" }, iam.NameReserved},
		{"a service account", func(s *scene) { s.mapping.Username = "system:serviceaccount:shop:web" }, iam.NameReserved},
		{"a group of the control plane", func(s *scene) { s.mapping.Groups = []string{"system:monitoring"} }, iam.NameReserved},
		{"a service account whose name is the session's", func(s *scene) {
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

// TestASessionFreelyNamedIsNoServiceOfTheCluster has a role that is exempt from the
// check, so that who assumes it names the node.
func TestASessionFreelyNamedIsNoServiceOfTheCluster(t *testing.T) {
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
