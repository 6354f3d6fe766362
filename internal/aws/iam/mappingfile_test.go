package iam_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

func TestParseFile(t *testing.T) {
	all := []string{"mapRoles", "mapUsers", "mapAccounts"}
	for _, tc := range []struct {
		rule, text          string
		kept, found, broken []string
	}{
		{
			rule: "the lists are at the top",
			text: "mapRoles:\n- rolearn: " + node + "\n  username: a\nmapUsers:\n- userarn: " + admin +
				"\n  username: b\nmapAccounts: [444455556666]\n",
			kept: []string{"role " + node + " a", "user " + admin + " b", "account 444455556666"},
		},
		{
			rule: "the lists are under server, with other settings of aws-iam-authenticator",
			text: "clusterID: blue\nserver:\n  port: 21362\n  backendMode: [MountedFile]\n  mapRoles:\n  - rolearn: " +
				node + "\n    username: a\n    group: b\n",
			kept: []string{"role " + node + " a"}, found: []string{"warning server.mapRoles[0].group:8 MappingUnknownField"},
		},
		{
			rule: "JSON is YAML",
			text: "{\n\t\"mapRoles\": [\n\t\t{\"rolearn\": \"" + node + "\", \"username\": 1}\n\t]\n}",
			found: []string{
				"error mapRoles[0].username:3 MappingInvalid",
			},
		},
		{
			rule: "letter case in names does not matter",
			text: "Server:\n  maproles: [{rolearn: " + node + ", username: a}]",
			kept: []string{"role " + node + " a"},
		},
		{
			rule: "the ARN of a session stands for its role",
			text: "mapRoles:\n- rolearn: arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0\n  username: a\n",
			kept: []string{"role " + node + " a"}, found: []string{"warning mapRoles[0].rolearn:2 MappingSession"},
		},
		{rule: "an empty list has no mappings", text: "mapRoles: []"},
		{rule: "an empty file is broken", text: "", found: []string{"error :1 MappingSyntax"}, broken: all},
		{rule: "a file with comments only is broken", text: "# a\n", found: []string{"error :1 MappingSyntax"}, broken: all},
		{rule: "a file that is a list is broken", text: "- a", found: []string{"error :1 MappingSyntax"}, broken: all},
		{
			rule: "a broken file breaks all lists", text: "mapRoles: []\nmapUsers: [\n",
			found: []string{"error :2 MappingSyntax"}, broken: all,
		},
		{
			rule: "a broken list does not affect other lists",
			text: "mapRoles: {}\nmapUsers: [{userarn: " + admin + ", username: b}]",
			kept: []string{"user " + admin + " b"}, found: []string{"error mapRoles:1 MappingSyntax"}, broken: []string{"mapRoles"},
		},
		{
			rule: "a list that is given twice is broken",
			text: "mapRoles: [{rolearn: " + node + ", username: a}]\nserver:\n  mapRoles: []\n", found: []string{
				"error server.mapRoles:3 MappingSyntax",
			}, broken: []string{"mapRoles"},
		},
		{
			rule: "unknown keys are reported",
			text: "map-roles: []\nmapRole: []\nserver:\n  mapUser: []\n  reservedPrefixConfig: []\nother: 1\n",
			found: []string{
				"error map-roles:1 MappingUnknownKey", "error mapRole:2 MappingUnknownKey", "error server.mapUser:4 MappingUnknownKey",
				"warning server.reservedPrefixConfig:5 MappingUnknownKey", "warning other:6 MappingUnknownKey",
			},
		},
		{
			rule:  "a ConfigMap is not a file of mappings",
			text:  "apiVersion: v1\nkind: ConfigMap\ndata:\n  mapRoles: |\n    - a\n",
			found: []string{"error data:3 MappingUnknownKey", "warning apiVersion:1 MappingUnknownKey", "warning kind:2 MappingUnknownKey"},
		},
		{
			rule:  "only the first document is read",
			text:  "mapRoles: []\n---\nmapUsers: []\n",
			found: []string{"error :3 MappingMoreDocuments"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			m, findings := iam.ParseFile([]byte(tc.text), "mappings.yaml")
			compare(t, "mappings", allShown(m), tc.kept)
			compare(t, "findings", allFound(findings), tc.found)
			compare(t, "broken", m.Broken, tc.broken)
			for _, f := range findings {
				if f.Place.File != "mappings.yaml" || f.Place.Line == 0 || f.Place.KeyLine != 0 || f.Consequence == "" || f.Remedy == "" {
					t.Errorf("the finding is incomplete: %+v", f)
				}
			}
			for _, mapping := range m.All() {
				if mapping.Place.File != "mappings.yaml" || mapping.Place.Line == 0 || mapping.Source != "file mappings.yaml" {
					t.Errorf("a mapping without a place: %+v", mapping)
				}
			}
		})
	}
}

func TestParseIdentityMapping(t *testing.T) {
	for _, tc := range []struct {
		rule, arn, username string
		groups              []string
		want                string
		found               []string
	}{
		{
			"a role", node, "system:node:{{EC2PrivateDNSName}}",
			[]string{"system:nodes"},
			"role " + node + " system:node:{{EC2PrivateDNSName}} system:nodes", nil,
		},
		{"a user", admin, "ann", nil, "user " + admin + " ann ", nil},
		{"root is a user", "arn:aws:iam::111122223333:root", "ann", nil, "user arn:aws:iam::111122223333:root ann ", nil},
		{
			"a session stands for its role", "arn:aws:sts::111122223333:assumed-role/node/x", "a", nil,
			"role " + node + " a ",
			[]string{"warning spec.arn:0 MappingSession"},
		},
		{
			"an empty group is left out", node, "a",
			[]string{"", "b"},
			"role " + node + " a b",
			[]string{"warning spec.groups[0]:0 MappingGroupEmpty"},
		},
		{"an empty ARN", "", "a", nil, "", []string{"error spec.arn:0 MappingInvalid"}},
		{"an ARN of no caller", "arn:aws:iam::111122223333:policy/a", "a", nil, "", []string{"error spec.arn:0 MappingInvalid"}},
		{"no username", node, "", nil, "", []string{"error spec.username:0 MappingInvalid"}},
		{
			"templates", node, "{{ SessionName }}",
			[]string{"{{x}}"},
			"",
			[]string{"error spec.groups[0]:0 MappingTemplateUnknown", "error spec.username:0 MappingTemplateSpaced"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			mapping, findings, ok := iam.ParseIdentityMapping("blue", tc.arn, tc.username, tc.groups)
			got := ""
			if ok {
				got = shown(mapping)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			compare(t, "findings", allFound(findings), tc.found)
			for _, f := range findings {
				if f.Place.Object != "IAMIdentityMapping blue" {
					t.Errorf("found at %s", f.Place)
				}
			}
		})
	}
}

func TestCollectedIdentityMappings(t *testing.T) {
	var list []iam.Mapping
	for _, name := range []string{"a", "b", "c"} {
		arn := node
		if name == "b" {
			arn = admin
		}
		mapping, _, ok := iam.ParseIdentityMapping(name, arn, name, nil)
		if !ok {
			t.Fatal(name)
		}
		list = append(list, mapping)
	}
	m, findings := iam.Collect(list)
	compare(t, "mappings", allShown(m), []string{"role " + node + " c", "user " + admin + " b"})
	if len(findings) != 1 || findings[0].Code != iam.MappingDuplicate || findings[0].Place.Object != "IAMIdentityMapping a" {
		t.Errorf("findings %v", findings)
	}
}

func TestARNsOfNoCaller(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:iam::111122223333:role/*":                            "wildcard",
		"arn:aws:iam::<ACCOUNT>:role/node":                            "to fill in",
		"arn:aws:iam::${AWS_ACCOUNT_ID}:role/node":                    "to fill in",
		"arn:aws:iam::111122223333:instance-profile/node":             "instance profile",
		"arn:aws:iam::111122223333:policy/node":                       "neither a role nor a user",
		"arn:aws:iam::111122223333:group/node":                        "neither a role nor a user",
		"arn:aws:iam::11112222333:role/node":                          "12 digits",
		"arn:aws:iam:::role/node":                                     "no account",
		"arn:aws:iam:eu-west-1:111122223333:role/node":                "region",
		"arn:aws:iam::111122223333:role/":                             "does not name",
		"arn:aws:iam::111122223333:role/a//":                          "does not name",
		"arn:aws:iam::111122223333:root/x":                            "does not name",
		"arn:aws:s3:::bucket":                                         "12 digits",
		"arn:aws:sts::111122223333:assumed-role/node":                 "does not name a session",
		"arn:aws:iam::111122223333:role/n\u00f6de":                    "not allowed in ARNs",
		" arn:aws:iam::111122223333:role/node":                        "space",
		"node":                                                        "not an ARN",
		"arn:aws:iam::111122223333:role/" + strings.Repeat("a", 2100): "longer",
	} {
		_, findings, ok := iam.ParseIdentityMapping("blue", arn, "a", nil)
		if ok || len(findings) != 1 || !strings.Contains(findings[0].Message, want) || len(findings[0].Message) > 500 {
			t.Errorf("%s: %v, %v, want %q", arn, ok, findings, want)
		}
	}
}

func TestCheck(t *testing.T) {
	roles := `
- {rolearn: "arn:aws:iam::111122223333:role/plain", username: "system:node:{{EC2PrivateDNSName}}", ` +
		`groups: ["system:nodes", "system:masters"]}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/pathed", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/twice", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/teams/b/twice", username: b}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/beside", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/beside", username: b}
- {rolearn: "arn:aws-cn:iam::111122223333:role/far", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/controller", username: "system:kube-controller-manager"}
- {rolearn: "arn:aws:iam::111122223333:role/service", username: "system:serviceaccount:{{SessionName}}"}
- {rolearn: "arn:aws:iam::111122223333:role/open", username: "system:{{SessionName}}", ` +
		`groups: ["system:{{SessionName}}", "{{SessionName}}"]}
- {rolearn: "arn:aws:iam::111122223333:role/groups", username: a, groups: ["system:nodes", "system:other", "system:node:{{AccountID}}"]}
`
	m, findings := configMap(t, map[string]string{"mapRoles": roles, "mapAccounts": "- 111122223333"})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	common := []string{
		"error data.mapRoles[6]:8 MappingPartition",
		"error data.mapRoles[7]:9 MappingReserved",
		"error data.mapRoles[8]:10 MappingReserved",
		"error data.mapRoles[10]:12 MappingReserved",
		"error data.mapRoles[10]:12 MappingReserved",
	}
	for _, tc := range []struct {
		rule  string
		rules iam.Rules
		want  []string
	}{
		{"paths are compared", iam.Rules{Partition: "aws", RolePaths: iam.Exact, Reserved: iam.DefaultReserved()}, append([]string{
			"error data.mapRoles[1]:3 " +
				"MappingRolePath", "error data.mapRoles[2]:4 MappingRolePath", "error data.mapRoles[3]:5 MappingRolePath",
			"error data.mapRoles[4]:6 MappingRolePath",
		}, common...)},
		{"roles are matched by their names", iam.Rules{
			Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved(),
		}, slices.Concat([]string{
			"error data.mapRoles[2]:4 MappingRolePathAmbiguous", "error data.mapRoles[3]:5 MappingRolePathAmbiguous",
			"error data.mapRoles[4]:6 MappingRolePath",
		}, common, []string{"warning data.mapRoles[1]:3 MappingRolePath"})},
		{"unset rules are not checked", iam.Rules{RolePaths: iam.MatchName}, []string{
			"error data.mapRoles[2]:4 MappingRolePathAmbiguous", "error data.mapRoles[3]:5 MappingRolePathAmbiguous",
			"error data.mapRoles[4]:6 MappingRolePath", "warning data.mapRoles[1]:3 MappingRolePath",
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			findings := m.Check(tc.rules)
			compare(t, "findings", allFound(findings), tc.want)
			for _, f := range findings {
				if f.Subject == "" || f.Message == "" || f.Consequence == "" || f.Remedy == "" || strings.Contains(f.Remedy, "/teams/") {
					t.Errorf("the finding is incomplete or wrong: %+v", f)
				}
			}
			if !slices.IsSortedFunc(findings, finding.Compare) {
				t.Error("not sorted")
			}
		})
	}
}
