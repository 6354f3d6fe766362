package iam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// unusableEntries are entries of mapRoles for the role node that cannot be used.
func unusableEntries() map[string]string {
	entry := func(rest string) string { return "- rolearn: " + node + "\n" + rest }
	return map[string]string{
		"an unknown template in the username": entry("  username: '{{Nobody}}'\n"),
		"a template with a space":             entry("  username: 'dev{{ SessionName }}'\n"),
		"an unknown template in a group":      entry("  username: dev\n  groups: ['{{x}}']\n"),
		"groups that are a text":              entry("  username: dev\n  groups: view\n"),
		"groups with commas":                  entry("  username: dev\n  groups: \"a,b\"\n"),
		"groups that are an object":           entry("  username: dev\n  groups: {a: b}\n"),
		"a number in groups":                  entry("  username: dev\n  groups: [a, 1.5]\n"),
		"a boolean in groups":                 entry("  username: dev\n  groups: [on]\n"),
		"a list in groups":                    entry("  username: dev\n  groups: [[a]]\n"),
		"a space after the username":          entry("  username: 'dev '\n"),
		"a space after a group":               entry("  username: dev\n  groups: ['view ']\n"),
		"a line break in the username":        entry("  username: |\n    dev\n"),
		"a number as username":                entry("  username: 12\n"),
		"no username":                         entry("  groups: [view]\n"),
		"an empty username":                   entry("  username: ''\n"),
		"a username without a node's name":    entry("  username: 'system:node:'\n"),
		"a field in two cases":                entry("  username: dev\n  groups: [view]\n  Groups: [edit]\n"),
		"a field of a merge in another case":  "- <<: {groups: [view]}\n  rolearn: " + node + "\n  username: dev\n  Groups: [edit]\n",
		"an ARN in two cases":                 "- rolearn: " + node + "\n  RoleARN: " + node + "2\n  username: dev\n",
		"an ARN with a space after it":        "- rolearn: '" + node + " '\n  username: dev\n",
		"an ARN in base64":                    "- rolearn: !!binary YXJuOmF3czppYW06OjExMTEyMjIyMzMzMzpyb2xlL25vZGU=\n  username: dev\n",
		"an ARN whose field is in base64":     "- !!binary cm9sZWFybg==: " + node + "\n  username: dev\n",
		"an ARN in upper case":                "- rolearn: " + strings.ToUpper(node) + "\n  username: dev\n  groups: view\n",
		"a field with a look-alike letter":    entry("  username: dev\n  groups: [view]\n  group\u017f: []\n"),
	}
}

// TestUnusableEntryRevokesAccess shows that an edit which makes an entry unusable gives
// its caller nothing from another entry. In the reference, the last entry for an ARN
// counts even if it is invalid.
func TestUnusableEntryRevokesAccess(t *testing.T) {
	const good = "- {rolearn: " + node + ", username: admin, groups: [system:masters]}\n"
	user := strings.Replace(good, "rolearn", "userarn", 1)
	for what, unusable := range unusableEntries() {
		for _, tc := range []struct {
			where string
			data  map[string]string
		}{
			{"after a good entry", map[string]string{"mapRoles": good + unusable}},
			{"before a good entry", map[string]string{"mapRoles": unusable + good}},
			{"between good entries", map[string]string{"mapRoles": good + unusable + good}},
			{"before the other list", map[string]string{"mapRoles": unusable, "mapUsers": user}},
			{"before accounts", map[string]string{"mapRoles": unusable, "mapAccounts": "- 111122223333"}},
			{
				"in the other list before accounts",
				map[string]string{
					"mapUsers": strings.NewReplacer("rolearn", "userarn", "RoleARN", "UserARN", "cm9sZWFybg==",
						"dXNlcmFybg==").Replace(unusable),
					"mapAccounts": "- 111122223333",
				},
			},
		} {
			t.Run(what+"/"+tc.where, func(t *testing.T) {
				m, findings := configMap(t, tc.data)
				for _, policy := range []iam.PathPolicy{iam.Exact, iam.MatchName} {
					mapping, ok := m.Find(node, "111122223333", policy)
					if !ok || !mapping.Unusable || mapping.Username != "" || len(mapping.Groups) > 0 {
						t.Errorf("%s: finds %+v, %v", policy, mapping, ok)
					}
					if other, ok := m.Find(admin, "111122223333", policy); ok && other.Unusable {
						t.Errorf("another caller finds %+v", other)
					}
				}
				invalid, duplicates := 0, 0
				for _, f := range findings {
					switch f.Code {
					case iam.MappingInvalid, iam.MappingTemplateSpaced, iam.MappingTemplateUnknown:
						invalid++
					case iam.MappingDuplicate:
						duplicates++
					}
				}
				want := strings.Count(tc.data["mapRoles"]+tc.data["mapUsers"], "username: admin,")
				if invalid == 0 || duplicates != want {
					t.Errorf("%d findings of what is wrong, %d of %d entries that do not count: %v", invalid, duplicates, want, findings)
				}
			})
		}
	}
}

func TestEntriesWithoutAReadableARNHideNobody(t *testing.T) {
	const good = "- {rolearn: " + node + ", username: a}\n"
	for what, unusable := range map[string]string{
		"no ARN":                        "- username: b\n",
		"a number":                      "- {rolearn: 12, username: b}\n",
		"a wildcard":                    "- {rolearn: '" + node + "*', username: b}\n",
		"the field of the other list":   "- {userarn: " + node + "2, username: b}\n",
		"a session":                     "- {rolearn: 'arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0', username: b}\n",
		"another role":                  "- {rolearn: " + node + "2, username: 5}\n",
		"a merge whose ARN is replaced": "- {<<: {rolearn: " + node + "}, rolearn: " + node + "2, username: 5}\n",
	} {
		m, _ := configMap(t, map[string]string{"mapRoles": good + unusable})
		if mapping, ok := m.Find(node, "", iam.Exact); !ok || mapping.Username != "a" {
			t.Errorf("%s: finds %+v, %v", what, mapping, ok)
		}
	}
}

func TestUnusableEntriesWithPathsHideRolesOfTheirName(t *testing.T) {
	m, _ := configMap(t, map[string]string{
		"mapRoles": "- {rolearn: 'arn:aws:iam::111122223333:role/a/node', username: 5}\n- {rolearn: " +
			"'arn:aws:iam::111122223333:role/b/node', username: b}\n",
		"mapAccounts": "- 111122223333",
	})
	if mapping, ok := m.Find(node, "111122223333", iam.MatchName); !ok || !mapping.Unusable {
		t.Errorf("by name: %+v, %v", mapping, ok)
	}
	if mapping, ok := m.Find(node, "111122223333", iam.Exact); !ok || mapping.Kind != iam.AccountMapping {
		t.Errorf("as written: %+v, %v", mapping, ok)
	}
}

func TestUnusableEntriesStayWhileTheirListIsBroken(t *testing.T) {
	read := func(roles, users string) *iam.Mappings {
		m, _ := configMap(t, map[string]string{"mapRoles": roles, "mapUsers": users})
		return m
	}
	first := read("- {rolearn: "+node+", username: 5}", "- {userarn: "+admin+", username: 5}")
	compare(t, "unusable", hiddenCallers(first), []string{"role " + node, "user " + admin})
	next := read("- [", "- {userarn: "+admin+", username: a}").Keep(first)
	compare(t, "unusable", hiddenCallers(next), []string{"role " + node})
	if mapping, ok := next.Find(node, "", iam.Exact); !ok || !mapping.Unusable {
		t.Errorf("finds %+v, %v", mapping, ok)
	}
	if mapping, ok := next.Find(admin, "", iam.Exact); !ok || mapping.Username != "a" {
		t.Errorf("finds %+v, %v", mapping, ok)
	}
	if after := read("", "").Keep(next); len(after.Unusable) > 0 {
		t.Errorf("deleted, it is %v", after.Unusable)
	}
}

func TestAnIdentityMappingThatCannotBeUsedHidesTheOthers(t *testing.T) {
	good, _, _ := iam.ParseIdentityMapping("a", node, "admin", []string{"system:masters"})
	bad, _, ok := iam.ParseIdentityMapping("b", node, "{{x}}", nil)
	if ok || !bad.Unusable {
		t.Fatalf("%+v, %v", bad, ok)
	}
	for _, list := range [][]iam.Mapping{{good, bad}, {bad, good}} {
		m, findings := iam.Collect(list)
		if mapping, ok := m.Find(node, "", iam.Exact); !ok || !mapping.Unusable || len(m.Roles) > 0 {
			t.Errorf("finds %+v, %v", mapping, ok)
		}
		if fmt.Sprint(allFound(findings)) != "[error spec:0 MappingDuplicate]" {
			t.Errorf("findings %v", findings)
		}
	}
}

// The ARN of an object that cannot be used may be the mistake.
func TestASpaceAroundTheARNOfAnIdentityMappingHidesTheOthers(t *testing.T) {
	good, _, _ := iam.ParseIdentityMapping("a", node, "admin", []string{"system:masters"})
	for _, arn := range []string{node + " ", " " + node, node + "\n"} {
		bad, _, ok := iam.ParseIdentityMapping("b", arn, "dev", nil)
		if ok || !bad.Unusable {
			t.Fatalf("%q: %+v, %v", arn, bad, ok)
		}
		for _, list := range [][]iam.Mapping{{good, bad}, {bad, good}} {
			m, _ := iam.Collect(list)
			if mapping, ok := m.Find(node, "", iam.Exact); !ok || !mapping.Unusable {
				t.Errorf("%q: finds %+v, %v", arn, mapping, ok)
			}
		}
	}
}

// TestAnARNInTheFieldOfTheOtherListIsRead: the entry is about that ARN, so that an older
// entry does not give its caller back the rights that the edit took away.
func TestAnARNInTheFieldOfTheOtherListIsRead(t *testing.T) {
	for list, entries := range map[string]string{
		"mapRoles": "- {rolearn: " + node + ", username: admin, groups: [system:masters]}\n- {userarn: " + node + ", username: dev}\n",
		"mapUsers": "- {userarn: " + admin + ", username: admin, groups: [system:masters]}\n- {rolearn: " + admin + ", username: dev}\n",
	} {
		m, findings := configMap(t, map[string]string{list: entries})
		arn := map[string]string{"mapRoles": node, "mapUsers": admin}[list]
		if mapping, ok := m.Find(arn, "", iam.Exact); !ok || !mapping.Unusable {
			t.Errorf("%s: finds %+v, %v", list, mapping, ok)
		}
		if !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == iam.MappingDuplicate }) {
			t.Errorf("%s: the older entry is not reported: %v", list, findings)
		}
	}
}
