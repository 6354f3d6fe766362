package iam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

const (
	node  = "arn:aws:iam::111122223333:role/node"
	admin = "arn:aws:iam::111122223333:user/admin"
)

var awsAuth = finding.Place{Object: "ConfigMap kube-system/aws-auth"}

// shown is a mapping on one line.
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

// hiddenCallers are the ARNs whose entries cannot be used.
func hiddenCallers(m *iam.Mappings) []string {
	var arns []string
	for _, entry := range m.Unusable {
		arns = append(arns, string(entry.Kind)+" "+entry.ARN)
	}
	return arns
}

// found is a finding without its words.
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
			rule:  "groups may be missing or empty",
			roles: "- {rolearn: " + node + ", username: a}\n- {rolearn: " + node + "2, username: b, groups: }\n- {rolearn: " + node + "3, username: c, groups: []}",
			kept:  []string{"role " + node + " a", "role " + node + "2 b", "role " + node + "3 c"},
		},
		{
			rule:  "the case of letters in the names of fields does not matter",
			roles: "- roleARN: " + node + "\n  UserName: a\n  GROUPS: [b]",
			kept:  []string{"role " + node + " a b"},
		},
		{
			rule:  "letters that are like others in another alphabet do not count",
			roles: "- rolearn: " + node + "\n  uſername: a",
			found: []string{"error data.mapRoles[0]:1 MappingInvalid", `error data.mapRoles[0].uſername:2 MappingInvalid`},
		},
		{rule: "nothing is no mapping", roles: ""},
		{rule: "spaces are no mapping", roles: " \n\t\n"},
		{rule: "quotes with nothing in them are no mapping", roles: `""`},
		{rule: "backquotes with nothing in them are no mapping", roles: "``\n"},
		{rule: "null is no mapping", roles: "null"},
		{rule: "comments are no mapping", roles: "# nobody\n"},
		{rule: "an empty list is no mapping", roles: "[]"},
		{
			rule:  "what cannot be used is left out, and the rest is kept",
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
			rule:  "beside that of a role it is not looked at",
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
			rule:  "everything that is wrong with an entry is found",
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
			rule:  "numbers, truth values and other tags are no texts",
			roles: "- {rolearn: " + node + ", username: 12}\n- {rolearn: " + node + "2, username: true}\n- {rolearn: " + node + "3, username: yes}\n- {rolearn: " + node + "4, username: !!binary YQ==}\n- {rolearn: " + node + "5, username: a, groups: [1.5]}",
			found: []string{
				"error data.mapRoles[0].username:1 MappingInvalid", "error data.mapRoles[1].username:2 MappingInvalid",
				"error data.mapRoles[2].username:3 MappingInvalid", "error data.mapRoles[3].username:4 MappingInvalid",
				"error data.mapRoles[4].groups[0]:5 MappingInvalid",
			},
		},
		{
			rule:  "an ARN is a text too, and so is the name of a field",
			roles: "- {rolearn: 111122223333, username: a}\n- {[a]: b, rolearn: " + node + ", username: a}",
			found: []string{"error data.mapRoles[0].rolearn:1 MappingInvalid", "error data.mapRoles[1]:2 MappingInvalid"},
		},
		{
			rule:  "in quotes they are",
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
			rule:  "an unknown placeholder is no plain text",
			roles: "- rolearn: " + node + "\n  username: system:node:{{PrivateDNSName}}\n- rolearn: " + node + "2\n  username: a\n  groups: [b, 'c{{ec2privatednsname}}']",
			found: []string{"error data.mapRoles[0].username:2 MappingTemplateUnknown", "error data.mapRoles[1].groups[1]:5 MappingTemplateUnknown"},
		},
		{
			rule:  "a placeholder with spaces is none",
			roles: "- rolearn: " + node + "\n  username: system:node:{{ EC2PrivateDNSName }}",
			found: []string{"error data.mapRoles[0].username:2 MappingTemplateSpaced"},
		},
		{
			rule:  "names have no line breaks and no spaces around them",
			roles: "- rolearn: " + node + "\n  username: |\n    a\n- rolearn: " + node + "2\n  username: ' a'\n- rolearn: " + node + "3\n  username: a\n  groups: [\"a\\tb\"]",
			found: []string{
				"error data.mapRoles[0].username:2 MappingInvalid", "error data.mapRoles[1].username:5 MappingInvalid",
				"error data.mapRoles[2].groups[0]:8 MappingInvalid",
			},
		},
		{
			rule:  "an empty group is left out",
			roles: "- rolearn: " + node + "\n  username: a\n  groups:\n  - b\n  -\n  - ''\n",
			kept:  []string{"role " + node + " a b"},
			found: []string{"warning data.mapRoles[0].groups[1]:5 MappingGroupEmpty", "warning data.mapRoles[0].groups[2]:6 MappingGroupEmpty"},
		},
		{
			rule:  "an indentation makes one group of two",
			roles: "- rolearn: " + node + "\n  username: a\n  groups:\n  - system:bootstrappers\n    - system:nodes\n",
			kept:  []string{"role " + node + " a system:bootstrappers - system:nodes"},
			found: []string{"error data.mapRoles[0].groups[0]:4 MappingGroupFolded"},
		},
		{
			rule:  "fields that nobody reads are reported",
			roles: "- rolearn: " + node + "\n  username: a\n  group: [b]\n  userid: AROA\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].group:3 MappingUnknownField", "warning data.mapRoles[0].userid:4 MappingUnknownField"},
		},
		{
			rule:  "of a field that is given twice, the last one counts",
			roles: "- rolearn: " + node + "\n  username: a\n  username: b\n",
			kept:  []string{"role " + node + " b"},
			found: []string{"warning data.mapRoles[0].username:3 MappingFieldTwice"},
		},
		{
			rule:  "which of two cases of a field is meant is not guessed",
			roles: "- rolearn: " + node + "\n  username: a\n  Username: b\n",
			found: []string{"error data.mapRoles[0].Username:3 MappingInvalid"},
		},
		{
			rule:  "of two entries about one role, the last one counts, in any case of letters",
			roles: "- rolearn: " + node + "\n  username: a\n- rolearn: ARN:aws:iam::111122223333:role/NODE\n  username: b\n",
			kept:  []string{"role ARN:aws:iam::111122223333:role/NODE b"},
			found: []string{"warning data.mapRoles[0]:1 MappingDuplicate"},
		},
		{
			rule:  "two entries that say the same do no harm",
			roles: "- {rolearn: " + node + ", username: a, groups: [b]}\n- {rolearn: " + node + ", username: a, groups: [b]}\n",
			kept:  []string{"role " + node + " a b"},
			found: []string{"info data.mapRoles[0]:1 MappingDuplicate"},
		},
		{
			rule: "aliases and merge keys give what they stand for, on the line where it is",
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
			rule:  "of merged objects the first one gives a field, and the entry's own counts most",
			roles: "- &a {rolearn: " + node + ", username: a}\n- &b {rolearn: " + node + "2, username: b, groups: [g]}\n- <<: [*a, *b]\n  rolearn: " + node + "3\n",
			kept:  []string{"role " + node + " a", "role " + node + "2 b g", "role " + node + "3 a g"},
		},
		{
			rule:  "a merge key after the field that it merges is not guessed at, and neither ARN is mapped",
			roles: "- &a {rolearn: " + node + ", username: a}\n- rolearn: " + node + "2\n  <<: *a\n",
			found: []string{"error data.mapRoles[0]:1 MappingDuplicate", "error data.mapRoles[1].rolearn:2 MappingInvalid"},
		},
		{
			rule:  "of a field that is merged in one case and written in another, none is guessed",
			roles: "- <<: {groups: [view]}\n  rolearn: " + node + "\n  username: a\n  Groups: [system:masters]\n",
			found: []string{"error data.mapRoles[0].Groups:4 MappingInvalid"},
		},
		{
			rule:  "nor of one that two objects merge",
			roles: "- <<: [{groups: [view]}, {Groups: [system:masters]}]\n  rolearn: " + node + "\n  username: a\n",
			found: []string{"error data.mapRoles[0].<<[0]:1 MappingInvalid"},
		},
		{
			rule:  "nor of one that two merge keys merge",
			roles: "- <<: {groups: [view]}\n  rolearn: " + node + "\n  username: a\n  <<: {Groups: [system:masters]}\n",
			found: []string{"error data.mapRoles[0].groups:4 MappingInvalid"},
		},
		{
			rule:  "a username without the name of a node is none",
			roles: "- rolearn: " + node + "\n  username: 'system:node:'\n- rolearn: " + node + "2\n  username:\n    system:node:\n",
			found: []string{"error data.mapRoles[0].username:2 MappingInvalid", "error data.mapRoles[1].username:5 MappingInvalid"},
		},
		{
			rule:  "without quotes it is no YAML",
			roles: "- rolearn: " + node + "\n  username: system:node:\n  groups: [a]\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "what is wrong with an object is wrong where it is merged",
			roles: "- &a {rolearn: " + node + ", Username: a, username: b}\n- <<: *a\n",
			found: []string{"error data.mapRoles[0].username:1 MappingInvalid", "error data.mapRoles[1].username:1 MappingInvalid"},
		},
		{
			rule:  "objects that are merged into themselves end somewhere",
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
			rule:  "a mark at the end begins no document",
			roles: "- rolearn: " + node + "\n  username: a\n---\n---\n...\n",
			kept:  []string{"role " + node + " a"},
		},
		{
			rule:  "what is wrong with a later document is not asked",
			roles: "- rolearn: " + node + "\n  username: a\n---\na: b\nc: [\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"error data.mapRoles:5 MappingMoreDocuments"},
		},
		{
			rule:  "line breaks of other systems are line breaks, and a byte order mark is nothing",
			roles: "\ufeff- rolearn: " + node + "\r\n  username: a\r\n  group: b\r\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].group:3 MappingUnknownField"},
		},
		{
			rule:  "line breaks that only YAML knows are not counted",
			roles: "# a\u2028# b\u0085# c\r# d\n- rolearn: " + node + "\n  username: a\n  group: b\n",
			kept:  []string{"role " + node + " a"},
			found: []string{"warning data.mapRoles[0].group:4 MappingUnknownField"},
		},
		{
			rule:  "an object is no list",
			roles: "rolearn: " + node + "\nusername: a\n", broken: true,
			found: []string{"error data.mapRoles:1 MappingSyntax"},
		},
		{
			rule:  "a text is no list",
			roles: "|\n  - a", broken: true,
			found: []string{"error data.mapRoles:1 MappingSyntax"},
		},
		{
			rule:  "a tab does not indent",
			roles: "- rolearn: " + node + "\n\tusername: a\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "the line is that of the mistake, not that on which the list begins",
			roles: "# roles\n- rolearn: " + node + "\n  username: a\n- rolearn: " + node + "2\n  username: b\n groups: c\n- rolearn: " + node + "3\n", broken: true,
			found: []string{"error data.mapRoles:6 MappingSyntax"},
		},
		{
			rule:  "the mistake of an unclosed quote is where it opens",
			roles: "# roles\n- rolearn: " + node + "\n  username: \"a\n- rolearn: b\n\n  username: c\n", broken: true,
			found: []string{"error data.mapRoles:3 MappingSyntax"},
		},
		{
			rule:  "an alias of nothing is on its line",
			roles: "- rolearn: " + node + "\n  username: a\n- *nobody\n", broken: true,
			found: []string{"error data.mapRoles:3 MappingSyntax"},
		},
		{
			rule:  "a mistake inside a list over several lines is on its line",
			roles: "- rolearn: " + node + "\n  groups: [\n    a,\n    b: c: d,\n    e,\n  ]\n", broken: true,
			found: []string{"error data.mapRoles:4 MappingSyntax"},
		},
		{
			rule:  "a mistake deep in something that spans very many lines is where that begins",
			roles: "# roles\n- [\n" + strings.Repeat("  a,\n", 5000) + "  b: c: d,\n]\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "control characters are no YAML",
			roles: "- rolearn: " + node + "\n  username: a\x01\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "what is no UTF-8 is no YAML",
			roles: "- rolearn: " + node + "\n  username: a\xff\n", broken: true,
			found: []string{"error data.mapRoles:2 MappingSyntax"},
		},
		{
			rule:  "a user in mapRoles is found all the same",
			roles: "- rolearn: " + admin + "\n  username: a\n",
			kept:  []string{"role " + admin + " a"},
			found: []string{"warning data.mapRoles[0].rolearn:1 MappingOtherKind"},
		},
		{
			rule:  "the ARN of a session is not that of its role",
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
					t.Errorf("says too little: %+v", f)
				}
				if strings.ContainsAny(f.String(), "\n\r\x00") {
					t.Errorf("not one line: %q", f.String())
				}
			}
		})
	}
}
