package iam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

const (
	node  = "arn:aws:iam::111122223333:role/node"
	admin = "arn:aws:iam::111122223333:user/admin"
)

var awsAuth = finding.Place{Object: "ConfigMap kube-system/aws-auth"}

// shown returns a mapping on one line.
func shown(m iam.Mapping) string {
	if m.Kind == iam.AccountMapping {
		return "account " + m.Account
	}
	return fmt.Sprintf("%s %s %s %s", m.Kind, m.ARN, m.Username, strings.Join(m.Groups, ","))
}

func allShown(m *iam.Mappings) []string {
	var lines []string
	for _, mapping := range m.All() {
		lines = append(lines, strings.TrimSpace(shown(mapping)))
	}
	return lines
}

// hiddenCallers returns the ARNs whose entries cannot be used.
func hiddenCallers(m *iam.Mappings) []string {
	var arns []string
	for _, entry := range m.Unusable {
		arns = append(arns, string(entry.Kind)+" "+entry.ARN)
	}
	return arns
}

// found returns a finding without its messages.
func found(f finding.Finding) string {
	return fmt.Sprintf("%s %s:%d %s", f.Severity, f.Place.Key, max(f.Place.KeyLine, f.Place.Line), f.Code)
}

func allFound(findings []finding.Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, found(f))
	}
	return lines
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}

func TestParseConfigMap(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		roles  string
		kept   []string
		found  []string
		broken bool
	}{
		{
			rule: "an entry has an ARN, a username and groups",
			roles: `
- rolearn: arn:aws:iam::111122223333:role/node
  username: system:node:{{EC2PrivateDNSName}}
  groups:
  - system:bootstrappers
  - system:nodes
`,
			kept: []string{"role " + node + " system:node:{{EC2PrivateDNSName}} system:bootstrappers,system:nodes"},
		},
		{
			rule: "groups may be missing or empty",
			roles: "- {rolearn: " + node + ", username: a}\n- {rolearn: " + node +
				"2, username: b, groups: }\n- {rolearn: " + node + "3, username: c, groups: []}",
			kept: []string{"role " + node + " a", "role " + node + "2 b", "role " + node + "3 c"},
		},
		{
			rule:  "letter case in the names of fields does not matter",
			roles: "- roleARN: " + node + "\n  UserName: a\n  GROUPS: [b]",
			kept:  []string{"role " + node + " a b"},
		},
		{
			rule:  "similar letters of another alphabet are not accepted",
			roles: "- rolearn: " + node + "\n  uſername: a",
			found: []string{"error data.mapRoles[0]:1 MappingInvalid", `error data.mapRoles[0].uſername:2 MappingInvalid`},
		},
		{rule: "an empty text has no mappings", roles: ""},
		{rule: "spaces have no mappings", roles: " \n\t\n"},
		{rule: "empty quotes have no mappings", roles: `""`},
		{rule: "empty backquotes have no mappings", roles: "``\n"},
		{rule: "null has no mappings", roles: "null"},
		{rule: "comments have no mappings", roles: "# nobody\n"},
		{rule: "an empty list has no mappings", roles: "[]"},
		{
			rule:  "unusable entries are left out, and others are kept",
			roles: "- rolearn: " + node + "\n  username: a\n- rolearn: nobody\n  username: b\n- rolearn: " + node + "2\n  username: c",
			kept:  []string{"role " + node + " a", "role " + node + "2 c"},
			found: []string{"error data.mapRoles[1].rolearn:3 MappingInvalid"},
		},
		{
			rule:  "an ARN is required",
			roles: "- username: a",
			found: []string{"error data.mapRoles[0]:1 MappingInvalid"},
		},
		{
			rule:  "the ARN of a user in mapRoles is in the wrong field",
			roles: "- userarn: " + admin + "\n  username: a",
			found: []string{"error data.mapRoles[0].userarn:1 MappingInvalid"},
		},
		{
			rule:  "a user's ARN next to a role's is ignored",
			roles: "- rolearn: " + node + "\n  userarn: " + admin + "\n  username: a",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].userarn:2 MappingUnknownField"},
		},
		{
			rule:  "a username is required",
			roles: "- rolearn: " + node + "\n\n- rolearn: " + node + "2\n  username:\n- rolearn: " + node + "3\n  username: ''\n",
			found: []string{
				"error data.mapRoles[0]:1 MappingInvalid",
				"error data.mapRoles[1].username:4 MappingInvalid",
				"error data.mapRoles[2].username:6 MappingInvalid",
			},
		},
		{
			rule:  "all mistakes of an entry are reported",
			roles: "-\n  rolearn: x\n  groups: a",
			found: []string{
				"error data.mapRoles[0]:2 MappingInvalid",
				"error data.mapRoles[0].rolearn:2 MappingInvalid",
				"error data.mapRoles[0].groups:3 MappingInvalid",
			},
		},
		{
			rule:  "groups are a list, not a text",
			roles: "- rolearn: " + node + "\n  username: a\n  groups: system:nodes",
			found: []string{"error data.mapRoles[0].groups:3 MappingInvalid"},
		},
		{
			rule:  "an entry is an object",
			roles: "- " + node + "\n- \n- [a]\n- 1",
			found: []string{
				"error data.mapRoles[0]:1 MappingInvalid", "error data.mapRoles[1]:2 MappingInvalid",
				"error data.mapRoles[2]:3 MappingInvalid", "error data.mapRoles[3]:4 MappingInvalid",
			},
		},
		{
			rule: "numbers, booleans and other tags are not texts",
			roles: "- {rolearn: " + node + ", username: 12}\n- {rolearn: " + node + "2, username: true}\n- {rolearn: " +
				node + "3, username: yes}\n- {rolearn: " + node + "4, username: !!binary YQ==}\n- {rolearn: " + node +
				"5, username: a, groups: [1.5]}",
			found: []string{
				"error data.mapRoles[0].username:1 MappingInvalid", "error data.mapRoles[1].username:2 MappingInvalid",
				"error data.mapRoles[2].username:3 MappingInvalid", "error data.mapRoles[3].username:4 MappingInvalid",
				"error data.mapRoles[4].groups[0]:5 MappingInvalid",
			},
		},
		{
			rule:  "ARNs and names of fields must be texts",
			roles: "- {rolearn: 111122223333, username: a}\n- {[a]: b, rolearn: " + node + ", username: a}",
			found: []string{"error data.mapRoles[0].rolearn:1 MappingInvalid", "error data.mapRoles[1]:2 MappingInvalid"},
		},
		{
			rule:  "values in quotes are texts",
			roles: "- {rolearn: " + node + ", username: '12', groups: [\"yes\", !!str 1, 2020-01-01]}",
			kept:  []string{"role " + node + " 12 yes,1,2020-01-01"},
		},
		{
			rule:  "a placeholder at the beginning needs quotes",
			roles: "- rolearn: " + node + "\n  username: {{SessionName}}\n- rolearn: " + node + "2\n  username: '{{SessionName}}'",
			kept:  []string{"role " + node + "2 {{SessionName}}"},
			found: []string{"error data.mapRoles[0].username:2 MappingInvalid"},
		},
		{
			rule: "an unknown placeholder is an error",
			roles: "- rolearn: " + node + "\n  username: system:node:{{PrivateDNSName}}\n- rolearn: " + node +
				"2\n  username: a\n  groups: [b, 'c{{ec2privatednsname}}']",
			found: []string{
				"error data.mapRoles[0].username:2 MappingTemplateUnknown",
				"error data.mapRoles[1].groups[1]:5 MappingTemplateUnknown",
			},
		},
		{
			rule:  "a placeholder with spaces is an error",
			roles: "- rolearn: " + node + "\n  username: system:node:{{ EC2PrivateDNSName }}",
			found: []string{"error data.mapRoles[0].username:2 MappingTemplateSpaced"},
		},
		{
			rule: "names have no line breaks and no spaces around them",
			roles: "- rolearn: " + node + "\n  username: |\n    a\n- rolearn: " + node + "2\n  username: ' a'\n- rolearn: " +
				node + "3\n  username: a\n  groups: [\"a\\tb\"]",
			found: []string{
				"error data.mapRoles[0].username:2 MappingInvalid", "error data.mapRoles[1].username:5 MappingInvalid",
				"error data.mapRoles[2].groups[0]:8 MappingInvalid",
			},
		},
		{
			rule:  "an empty group is left out",
			roles: "- rolearn: " + node + "\n  username: a\n  groups:\n  - b\n  -\n  - ''\n",
			kept:  []string{"role " + node + " a b"},
			found: []string{
				"warning data.mapRoles[0].groups[1]:5 MappingGroupEmpty",
				"warning data.mapRoles[0].groups[2]:6 MappingGroupEmpty",
			},
		},
		{
			rule:  "wrong indentation joins two groups",
			roles: "- rolearn: " + node + "\n  username: a\n  groups:\n  - system:bootstrappers\n    - system:nodes\n",
			kept:  []string{"role " + node + " a system:bootstrappers - system:nodes"},
			found: []string{"error data.mapRoles[0].groups[0]:4 MappingGroupFolded"},
		},
		{
			rule:  "unknown fields are reported",
			roles: "- rolearn: " + node + "\n  username: a\n  group: [b]\n  userid: AROA\n",
			kept:  []string{"role " + node + " a"},
			found: []string{
				"warning data.mapRoles[0].group:3 MappingUnknownField",
				"warning data.mapRoles[0].userid:4 MappingUnknownField",
			},
		},
		{
			rule:  "the last value of a repeated field counts",
			roles: "- rolearn: " + node + "\n  username: a\n  username: b\n",
			kept:  []string{"role " + node + " b"},
			found: []string{"warning data.mapRoles[0].username:3 MappingFieldTwice"},
		},
		{
			rule:  "a field in two spellings is an error",
			roles: "- rolearn: " + node + "\n  username: a\n  Username: b\n",
			found: []string{"error data.mapRoles[0].Username:3 MappingInvalid"},
		},
		{
			rule:  "the last of two entries for one role counts, in any letter case",
			roles: "- rolearn: " + node + "\n  username: a\n- rolearn: ARN:aws:iam::111122223333:role/NODE\n  username: b\n",
			kept:  []string{"role ARN:aws:iam::111122223333:role/NODE b"},
			found: []string{"warning data.mapRoles[0]:1 MappingDuplicate"},
		},
		{
			rule:  "identical entries are harmless",
			roles: "- {rolearn: " + node + ", username: a, groups: [b]}\n- {rolearn: " + node + ", username: a, groups: [b]}\n",
			kept:  []string{"role " + node + " a b"},
			found: []string{"info data.mapRoles[0]:1 MappingDuplicate"},
		},
		{
			rule: "aliases and merge keys are resolved, with the line of the value",
			roles: `- &first
  rolearn: arn:aws:iam::111122223333:role/node
  username: &name a
  groups: &groups [b]
- <<: *first
  rolearn: arn:aws:iam::111122223333:role/node2
- rolearn: nobody
  username: *name
  groups: *groups
- *first
`,
			kept:  []string{"role " + node + "2 a b", "role " + node + " a b"},
			found: []string{"error data.mapRoles[2].rolearn:7 MappingInvalid", "info data.mapRoles[0]:1 MappingDuplicate"},
		},
		{
			rule: "the first merged object with a field wins, and the entry's own field over all",
			roles: "- &a {rolearn: " + node + ", username: a}\n- &b {rolearn: " + node +
				"2, username: b, groups: [g]}\n- <<: [*a, *b]\n  rolearn: " + node + "3\n",
			kept: []string{"role " + node + " a", "role " + node + "2 b g", "role " + node + "3 a g"},
		},
		{
			rule:  "a merge key after a field that it merges is an error, and neither ARN is mapped",
			roles: "- &a {rolearn: " + node + ", username: a}\n- rolearn: " + node + "2\n  <<: *a\n",
			found: []string{"error data.mapRoles[0]:1 MappingDuplicate", "error data.mapRoles[1].rolearn:2 MappingInvalid"},
		},
		{
			rule:  "a field that is merged in one spelling and written in another is an error",
			roles: "- <<: {groups: [view]}\n  rolearn: " + node + "\n  username: a\n  Groups: [system:masters]\n",
			found: []string{"error data.mapRoles[0].Groups:4 MappingInvalid"},
		},
		{
			rule:  "a field that two objects merge in two spellings is an error",
			roles: "- <<: [{groups: [view]}, {Groups: [system:masters]}]\n  rolearn: " + node + "\n  username: a\n",
			found: []string{"error data.mapRoles[0].<<[0]:1 MappingInvalid"},
		},
		{
			rule:  "a field that two merge keys merge in two spellings is an error",
			roles: "- <<: {groups: [view]}\n  rolearn: " + node + "\n  username: a\n  <<: {Groups: [system:masters]}\n",
			found: []string{"error data.mapRoles[0].groups:4 MappingInvalid"},
		},
		{
			rule:  "a username without the name of a node is an error",
			roles: "- rolearn: " + node + "\n  username: 'system:node:'\n- rolearn: " + node + "2\n  username:\n    system:node:\n",
			found: []string{"error data.mapRoles[0].username:2 MappingInvalid", "error data.mapRoles[1].username:5 MappingInvalid"},
		},
		{
			rule:  "a trailing colon without quotes is not valid YAML",
			roles: "- rolearn: " + node + "\n  username: system:node:\n  groups: [a]\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "a mistake in an object is reported where it is merged too",
			roles: "- &a {rolearn: " + node + ", Username: a, username: b}\n- <<: *a\n",
			found: []string{"error data.mapRoles[0].username:1 MappingInvalid", "error data.mapRoles[1].username:1 MappingInvalid"},
		},
		{
			rule:  "recursive merges are bounded",
			roles: "- &a\n  <<: *a\n  rolearn: " + node + "\n  username: a\n",
			found: []string{"error data.mapRoles[0]:1 MappingInvalid"},
		},
		{
			rule:  "only objects are merged",
			roles: "- <<: a\n  rolearn: " + node + "\n  username: a\n",
			found: []string{"error data.mapRoles[0]:1 MappingInvalid"},
		},
		{
			rule:  "only the first document is read",
			roles: "---\n- rolearn: " + node + "\n  username: a\n---\n\n- rolearn: " + node + "2\n  username: b\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"error data.mapRoles:6 MappingMoreDocuments"},
		},
		{
			rule:  "an end marker begins no document",
			roles: "- rolearn: " + node + "\n  username: a\n---\n---\n...\n",
			kept:  []string{"role " + node + " a"},
		},
		{
			rule:  "later documents are not checked",
			roles: "- rolearn: " + node + "\n  username: a\n---\na: b\nc: [\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"error data.mapRoles:5 MappingMoreDocuments"},
		},
		{
			rule:  "CRLF is a line break, and a byte order mark is ignored",
			roles: "\ufeff- rolearn: " + node + "\r\n  username: a\r\n  group: b\r\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].group:3 MappingUnknownField"},
		},
		{
			rule:  "line breaks of YAML only are not counted",
			roles: "# a\u2028# b\u0085# c\r# d\n- rolearn: " + node + "\n  username: a\n  group: b\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].group:4 MappingUnknownField"},
		},
		{
			rule:  "an object is not a list",
			roles: "rolearn: " + node + "\nusername: a\n", broken: true,
			found: []string{"error data.mapRoles:1 MappingSyntax"},
		},
		{
			rule:  "a text is not a list",
			roles: "|\n  - a", broken: true,
			found: []string{"error data.mapRoles:1 MappingSyntax"},
		},
		{
			rule:  "a tab does not indent",
			roles: "- rolearn: " + node + "\n\tusername: a\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule: "the line is that of the mistake, not of the list",
			roles: "# roles\n- rolearn: " + node + "\n  username: a\n- rolearn: " + node +
				"2\n  username: b\n groups: c\n- rolearn: " + node + "3\n", broken: true,
			found: []string{"error data.mapRoles:6 MappingSyntax"},
		},
		{
			rule:  "an unclosed quote is reported where it opens",
			roles: "# roles\n- rolearn: " + node + "\n  username: \"a\n- rolearn: b\n\n  username: c\n", broken: true,
			found: []string{"error data.mapRoles:3 MappingSyntax"},
		},
		{
			rule:  "an unknown alias is reported on its line",
			roles: "- rolearn: " + node + "\n  username: a\n- *nobody\n", broken: true,
			found: []string{"error data.mapRoles:3 MappingSyntax"},
		},
		{
			rule:  "a mistake inside a multi-line list is reported on its line",
			roles: "- rolearn: " + node + "\n  groups: [\n    a,\n    b: c: d,\n    e,\n  ]\n", broken: true,
			found: []string{"error data.mapRoles:4 MappingSyntax"},
		},
		{
			rule:  "a mistake in a very long list is reported where the list begins",
			roles: "# roles\n- [\n" + strings.Repeat("  a,\n", 5000) + "  b: c: d,\n]\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "control characters are not valid YAML",
			roles: "- rolearn: " + node + "\n  username: a\x01\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "invalid UTF-8 is not valid YAML",
			roles: "- rolearn: " + node + "\n  username: a\xff\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "a user in mapRoles is mapped",
			roles: "- rolearn: " + admin + "\n  username: a\n",
			kept:  []string{"role " + admin + " a"},
			found: []string{"warning data.mapRoles[0].rolearn:1 MappingOtherKind"},
		},
		{
			rule:  "the ARN of a session is an error",
			roles: "- rolearn: arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0\n  username: a\n",
			found: []string{"error data.mapRoles[0].rolearn:1 MappingInvalid"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			m, findings := iam.ParseConfigMap(map[string]string{"mapRoles": tc.roles}, "aws-auth", awsAuth)
			compare(t, "mappings", allShown(m), tc.kept)
			compare(t, "findings", allFound(findings), tc.found)
			if broken := slices.Contains(m.Broken, "mapRoles"); broken != tc.broken {
				t.Errorf("broken: %v", m.Broken)
			}
			for _, f := range findings {
				if f.Message == "" || f.Consequence == "" || f.Remedy == "" {
					t.Errorf("the finding is incomplete: %+v", f)
				}
				if strings.ContainsAny(f.String(), "\n\r\x00") {
					t.Errorf("not one line: %q", f.String())
				}
			}
		})
	}
}
