package iam_test

import (
	"errors"
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
		{"is of an exempt role where its mapping asks for an instance", []func(*scene){exempt(nodeRole), stolen}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{"is of an exempt role where a group asks for an instance", []func(*scene){exempt(nodeRole), stolen, func(s *scene) {
			s.mapping.Username, s.mapping.Groups = "system:node:{{SessionName}}", []string{"of-{{EC2PrivateDNSName}}"}
		}}, iam.SessionRoleMismatch, []string{instanceID + " with roles"}},
		{"is of an exempt role where its mapping asks for an instance, which has ended", []func(*scene){exempt(nodeRole), ended}, iam.SessionInstanceEnded, []string{instanceID + " with roles"}},
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

// TestNodesAreInTheirVPCs: another VPC can have an instance of the same private DNS name.
func TestNodesAreInTheirVPCs(t *testing.T) {
	const other = "vpc-0ffffffffffffffff"
	const byName, bySession = "system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}"
	in := func(vpc string) func(*scene) {
		return func(s *scene) { s.instance(func(i *iam.Instance) { i.VPC = vpc }) }
	}
	check := func(c iam.SessionCheck) func(*scene) { return func(s *scene) { s.options.SessionCheck = c } }
	group := func(g string) func(*scene) { return func(s *scene) { s.mapping.Groups = []string{g} } }
	instance := func(change func(*iam.Instance)) func(*scene) { return func(s *scene) { s.instance(change) } }
	exempt := func(s *scene) { s.options.SessionCheckExempt = []string{nodeRole} }
	for _, tc := range []struct {
		rule, username string
		vpcs           []string
		change         []func(*scene)
		want           verdict.Code
	}{
		{"any, if none is named", byName, nil, []func(*scene){in(other)}, ""},
		{"the one that is named", byName, []string{vpc}, nil, ""},
		{"one of those that are named", byName, []string{other, vpc}, nil, ""},
		{"another one", byName, []string{vpc}, []func(*scene){in(other)}, iam.SessionOtherVPC},
		{"one that begins like it", byName, []string{vpc}, []func(*scene){in(vpc[:12])}, iam.SessionOtherVPC},
		{"none", byName, []string{vpc}, []func(*scene){in("")}, iam.SessionOtherVPC},
		{"another one, by the name of the session", bySession, []string{vpc}, []func(*scene){in(other)}, iam.SessionOtherVPC},
		{"another one, in a group of a node with a fixed name", "system:node:worker-1", []string{vpc}, []func(*scene){in(other), group("of-{{SessionName}}")}, iam.SessionOtherVPC},
		{"another one, without the role", byName, []string{vpc}, []func(*scene){in(other), check(iam.CheckInstance)}, iam.SessionOtherVPC},
		{"another one, without a check of the session", byName, []string{vpc}, []func(*scene){in(other), check(iam.NoSessionCheck)}, iam.SessionOtherVPC},
		{"the one that is named, without a check of the session", byName, []string{vpc}, []func(*scene){check(iam.NoSessionCheck)}, ""},
		{"another one, of a role that is exempt", byName, []string{vpc}, []func(*scene){in(other), exempt}, iam.SessionOtherVPC},
		{"another one, where it is clear late that it is a node", "{{EC2PrivateDNSName}}", []string{vpc}, []func(*scene){
			in(other), check(iam.NoSessionCheck), instance(func(i *iam.Instance) { i.PrivateDNSName = "system:node:worker-1" }),
		}, iam.SessionOtherVPC},
		{"another one, of which nobody asks", bySession, []string{vpc}, []func(*scene){in(other), check(iam.NoSessionCheck)}, ""},
		{"another one, of a role that is exempt and of which nobody asks", bySession, []string{vpc}, []func(*scene){in(other), exempt}, ""},
		{"another one, of who is no node", "machine:{{EC2PrivateDNSName}}", []string{vpc}, []func(*scene){in(other)}, ""},
		{"that of an instance that has ended, which has none", byName, []string{vpc}, []func(*scene){
			instance(func(i *iam.Instance) { i.VPC, i.PrivateDNSName, i.Running = "", "", false }),
		}, iam.SessionInstanceEnded},
		{"another one, in another account", byName, []string{vpc}, []func(*scene){
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

// TestAPathThatIsMappedIsThatOfTheInstancesRole: STS leaves paths out, so that who may
// create roles under one path alone could create the one that is mapped under another,
// before it is there or when it is no more. IAM knows the path of an instance's role.
func TestAPathThatIsMappedIsThatOfTheInstancesRole(t *testing.T) {
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
