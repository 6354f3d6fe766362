package iam_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

func TestParseFile(t *testing.T) {
	all := []string{"mapRoles", "mapUsers", "mapAccounts"}
	for _, tc := range []struct {
		rule, text          string
		kept, found, broken []string
	}{
		{
			rule: "the lists are at the top",
			text: "mapRoles:\n- rolearn: " + node + "\n  username: a\nmapUsers:\n- userarn: " + admin + "\n  username: b\nmapAccounts: [444455556666]\n",
			kept: []string{"role " + node + " a", "user " + admin + " b", "account 444455556666"},
		},
		{
			rule: "or where aws-iam-authenticator has them, beside its own settings",
			text: "clusterID: blue\nserver:\n  port: 21362\n  backendMode: [MountedFile]\n  mapRoles:\n  - rolearn: " + node + "\n    username: a\n    group: b\n",
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
			rule: "the case of letters in names does not matter",
			text: "Server:\n  maproles: [{rolearn: " + node + ", username: a}]",
			kept: []string{"role " + node + " a"},
		},
		{
			rule: "the ARN of a session stands for its role",
			text: "mapRoles:\n- rolearn: arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0\n  username: a\n",
			kept: []string{"role " + node + " a"}, found: []string{"warning mapRoles[0].rolearn:2 MappingSession"},
		},
		{rule: "no mapping is said with an empty list", text: "mapRoles: []"},
		{rule: "a file that is empty was not meant so", text: "", found: []string{"error :1 MappingSyntax"}, broken: all},
		{rule: "a file of comments neither", text: "# a\n", found: []string{"error :1 MappingSyntax"}, broken: all},
		{rule: "a list is not a file", text: "- a", found: []string{"error :1 MappingSyntax"}, broken: all},
		{rule: "a broken file breaks all lists", text: "mapRoles: []\nmapUsers: [\n", found: []string{"error :2 MappingSyntax"}, broken: all},
		{
			rule: "a broken list breaks no other one",
			text: "mapRoles: {}\nmapUsers: [{userarn: " + admin + ", username: b}]",
			kept: []string{"user " + admin + " b"}, found: []string{"error mapRoles:1 MappingSyntax"}, broken: []string{"mapRoles"},
		},
		{
			rule: "which of two lists is meant is not guessed",
			text: "mapRoles: [{rolearn: " + node + ", username: a}]\nserver:\n  mapRoles: []\n", found: []string{"error server.mapRoles:3 MappingSyntax"}, broken: []string{"mapRoles"},
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
					t.Errorf("says too little: %+v", f)
				}
			}
			for _, mapping := range m.All() {
				if mapping.Place.File != "mappings.yaml" || mapping.Place.Line == 0 || mapping.Source != "file mappings.yaml" {
					t.Errorf("a mapping of nowhere: %+v", mapping)
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
		{"a role", node, "system:node:{{EC2PrivateDNSName}}", []string{"system:nodes"}, "role " + node + " system:node:{{EC2PrivateDNSName}} system:nodes", nil},
		{"a user", admin, "ann", nil, "user " + admin + " ann ", nil},
		{"root is a user", "arn:aws:iam::111122223333:root", "ann", nil, "user arn:aws:iam::111122223333:root ann ", nil},
		{
			"a session is its role", "arn:aws:sts::111122223333:assumed-role/node/x", "a", nil,
			"role " + node + " a ",
			[]string{"warning spec.arn:0 MappingSession"},
		},
		{"an empty group is left out", node, "a", []string{"", "b"}, "role " + node + " a b", []string{"warning spec.groups[0]:0 MappingGroupEmpty"}},
		{"no ARN", "", "a", nil, "", []string{"error spec.arn:0 MappingInvalid"}},
		{"no ARN of a caller", "arn:aws:iam::111122223333:policy/a", "a", nil, "", []string{"error spec.arn:0 MappingInvalid"}},
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

func TestARNsThatNobodyHas(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:iam::111122223333:role/*":                            "wildcard",
		"arn:aws:iam::<ACCOUNT>:role/node":                            "filled in",
		"arn:aws:iam::${AWS_ACCOUNT_ID}:role/node":                    "filled in",
		"arn:aws:iam::111122223333:instance-profile/node":             "instance profile",
		"arn:aws:iam::111122223333:policy/node":                       "neither a role nor a user",
		"arn:aws:iam::111122223333:group/node":                        "neither a role nor a user",
		"arn:aws:iam::11112222333:role/node":                          "12 digits",
		"arn:aws:iam:::role/node":                                     "no account",
		"arn:aws:iam:eu-west-1:111122223333:role/node":                "region",
		"arn:aws:iam::111122223333:role/":                             "not that of",
		"arn:aws:iam::111122223333:role/a//":                          "not that of",
		"arn:aws:iam::111122223333:root/x":                            "not that of",
		"arn:aws:s3:::bucket":                                         "12 digits",
		"arn:aws:sts::111122223333:assumed-role/node":                 "not that of a session",
		"arn:aws:iam::111122223333:role/n\u00f6de":                    "no ARN has",
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
- {rolearn: "arn:aws:iam::111122223333:role/plain", username: "system:node:{{EC2PrivateDNSName}}", groups: ["system:nodes", "system:masters"]}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/pathed", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/twice", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/teams/b/twice", username: b}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/beside", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/beside", username: b}
- {rolearn: "arn:aws-cn:iam::111122223333:role/far", username: a}
- {rolearn: "arn:aws:iam::111122223333:role/controller", username: "system:kube-controller-manager"}
- {rolearn: "arn:aws:iam::111122223333:role/service", username: "system:serviceaccount:{{SessionName}}"}
- {rolearn: "arn:aws:iam::111122223333:role/open", username: "system:{{SessionName}}", groups: ["system:{{SessionName}}", "{{SessionName}}"]}
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
		{"paths are taken as they are", iam.Rules{Partition: "aws", RolePaths: iam.Exact, Reserved: iam.DefaultReserved()}, append([]string{
			"error data.mapRoles[1]:3 MappingRolePath", "error data.mapRoles[2]:4 MappingRolePath", "error data.mapRoles[3]:5 MappingRolePath",
			"error data.mapRoles[4]:6 MappingRolePath",
		}, common...)},
		{"roles are found by their names", iam.Rules{Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved()}, slices.Concat([]string{
			"error data.mapRoles[2]:4 MappingRolePathAmbiguous", "error data.mapRoles[3]:5 MappingRolePathAmbiguous",
			"error data.mapRoles[4]:6 MappingRolePath",
		}, common, []string{"warning data.mapRoles[1]:3 MappingRolePath"})},
		{"what is not known is not found", iam.Rules{RolePaths: iam.MatchName}, []string{
			"error data.mapRoles[2]:4 MappingRolePathAmbiguous", "error data.mapRoles[3]:5 MappingRolePathAmbiguous",
			"error data.mapRoles[4]:6 MappingRolePath", "warning data.mapRoles[1]:3 MappingRolePath",
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			findings := m.Check(tc.rules)
			compare(t, "findings", allFound(findings), tc.want)
			for _, f := range findings {
				if f.Subject == "" || f.Message == "" || f.Consequence == "" || f.Remedy == "" || strings.Contains(f.Remedy, "/teams/") {
					t.Errorf("says too little, or the wrong thing: %+v", f)
				}
			}
			if !slices.IsSortedFunc(findings, finding.Compare) {
				t.Error("not sorted")
			}
		})
	}
}
