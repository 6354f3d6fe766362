package iam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

func configMap(t *testing.T, data map[string]string) (*iam.Mappings, []finding.Finding) {
	t.Helper()
	return iam.ParseConfigMap(data, awsAuth.Object, awsAuth)
}

func TestKeysOfAConfigMap(t *testing.T) {
	m, findings := configMap(t, map[string]string{
		"mapRoles": "- {rolearn: " + node + ", username: a}",
		"mapUsers": "- {userarn: " + admin + ", username: b}\n- {userarn: " + node +
			", username: c}\n- {userarn: 'arn:aws:iam::111122223333:root', username: d}",
		"mapAccounts": "- 111122223333\n- 012345678901\n- '444455556666'\n- 12345678901\n- 111122223333\n- [a]\n-\n- abc",
		"mapusers":    "- {userarn: " + admin + ", username: x}",
		"map_roles":   "x",
		"notes":       "x",
	})
	compare(t, "mappings", allShown(m), []string{
		"role " + node + " a",
		"user " + admin + " b", "user " + node + " c", "user arn:aws:iam::111122223333:root d",
		"account 012345678901", "account 444455556666", "account 111122223333",
	})
	compare(t, "findings", allFound(findings), []string{
		"error data.map_roles:0 MappingUnknownKey",
		"error data.mapusers:0 MappingUnknownKey",
		"error data.mapAccounts[3]:4 MappingInvalid",
		"error data.mapAccounts[5]:6 MappingInvalid",
		"error data.mapAccounts[6]:7 MappingInvalid",
		"error data.mapAccounts[7]:8 MappingInvalid",
		"warning data.notes:0 MappingUnknownKey",
		"warning data.mapUsers[1]:2 MappingDuplicate",
		"warning data.mapUsers[1].userarn:2 MappingOtherKind",
		"info data.mapAccounts[0]:1 MappingDuplicate",
	})
	for _, mapping := range m.All() {
		if mapping.Source != "ConfigMap kube-system/aws-auth" || mapping.Place.Object != awsAuth.Object || mapping.Place.Key == "" ||
			mapping.Place.KeyLine == 0 {
			t.Errorf("a mapping without a place: %+v", mapping)
		}
	}
}

func TestMissingConfigMapHasNoMappings(t *testing.T) {
	m, findings := configMap(t, nil)
	if len(m.All()) > 0 || len(findings) > 0 || len(m.Broken) > 0 {
		t.Errorf("got %+v, %v", m, findings)
	}
}

func TestFind(t *testing.T) {
	const account, other = "111122223333", "444455556666"
	m, _ := configMap(t, map[string]string{
		"mapRoles": `
- {rolearn: "arn:aws:iam::111122223333:role/Node", username: role}
- {rolearn: "arn:aws:iam::111122223333:role/both", username: role-of-both}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/pathed", username: pathed}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/twice", username: twice-a}
- {rolearn: "arn:aws:iam::111122223333:role/teams/b/twice", username: twice-b}
- {rolearn: "arn:aws:iam::111122223333:role/teams/a/beside", username: beside-with}
- {rolearn: "arn:aws:iam::111122223333:role/beside", username: beside-without}
`,
		"mapUsers": `
- {userarn: "arn:aws:iam::111122223333:user/teams/a/Ann", username: ann}
- {userarn: "arn:aws:iam::111122223333:role/both", username: user-of-both}
- {userarn: "arn:aws:iam::111122223333:root", username: root}
- {userarn: "arn:aws:sts::111122223333:federated-user/fred", username: fred}
- {userarn: "arn:aws:iam::111122223333:role/teams/a/as-user", username: as-user}
`,
		"mapAccounts": "- 444455556666",
	})
	for _, tc := range []struct {
		rule, arn, account string
		policy             iam.PathPolicy
		want               string
	}{
		{"a role by its ARN", "arn:aws:iam::111122223333:role/Node", account, iam.Exact, "role"},
		{"in any letter case", "arn:aws:iam::111122223333:role/nODE", account, iam.Exact, "role"},
		{"not with similar letters of another alphabet", "arn:aws:iam::111122223333:role/\u212aode", account, iam.Exact, ""},
		{"not in another account", "arn:aws:iam::999988887777:role/Node", "999988887777", iam.Exact, ""},
		{"not in another partition", "arn:aws-cn:iam::111122223333:role/Node", account, iam.MatchName, ""},
		{"roles before users", "arn:aws:iam::111122223333:role/both", account, iam.Exact, "role-of-both"},
		{"a role with a path is not matched exactly", "arn:aws:iam::111122223333:role/pathed", account, iam.Exact, ""},
		{"a role with a path is matched by its name", "arn:aws:iam::111122223333:role/pathed", account, iam.MatchName, "pathed"},
		{"in any case", "arn:aws:iam::111122223333:role/PATHED", account, iam.MatchName, "pathed"},
		{"in mapUsers too", "arn:aws:iam::111122223333:role/as-user", account, iam.MatchName, "as-user"},
		{"not in another account", "arn:aws:iam::444455556666:role/pathed", "111122223333", iam.MatchName, ""},
		{"not by a part of its path", "arn:aws:iam::111122223333:role/a/pathed", account, iam.MatchName, ""},
		{"an ambiguous path matches nothing", "arn:aws:iam::111122223333:role/twice", account, iam.MatchName, ""},
		{"an equal ARN takes precedence over the name", "arn:aws:iam::111122223333:role/beside", account, iam.MatchName, "beside-without"},
		{"a user with its path", "arn:aws:iam::111122223333:user/teams/a/Ann", account, iam.Exact, "ann"},
		{"not a user without its path", "arn:aws:iam::111122223333:user/Ann", account, iam.MatchName, ""},
		{"root", "arn:aws:iam::111122223333:root", account, iam.Exact, "root"},
		{"a federated user", "arn:aws:sts::111122223333:federated-user/fred", account, iam.Exact, "fred"},
		{"an account", "arn:aws:iam::444455556666:role/any", other, iam.Exact, "account 444455556666"},
		{"an empty ARN", "", "", iam.MatchName, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, mappings := range []*iam.Mappings{m, {Roles: m.Roles, Users: m.Users, Accounts: m.Accounts}} {
				mapping, ok := mappings.Find(tc.arn, tc.account, tc.policy)
				got := mapping.Username
				if mapping.Kind == iam.AccountMapping {
					got = "account " + mapping.Account
				}
				if got != tc.want || ok != (tc.want != "") {
					t.Errorf("got %q, %v, want %q", got, ok, tc.want)
				}
			}
		})
	}
}

func TestBrokenListsKeepTheirLastContent(t *testing.T) {
	role := func(name string) string { return "- {rolearn: " + node + ", username: " + name + "}" }
	user := func(name string) string { return "- {userarn: " + admin + ", username: " + name + "}" }
	var last *iam.Mappings
	for _, step := range []struct {
		rule, roles, users string
		want               []string
	}{
		{"a list that was never valid is empty", "- [", user("a"), []string{"user " + admin + " a"}},
		{"a valid list replaces the previous one", role("a"), user("a"), []string{"role " + node + " a", "user " + admin + " a"}},
		{"a broken list keeps its content, another one changes", "- [", user("b"), []string{"role " + node + " a", "user " + admin + " b"}},
		{"a list that stays broken keeps its content", "a: b", "{", []string{"role " + node + " a", "user " + admin + " b"}},
		{"an unusable entry does not break its list", "- {rolearn: " + node + "}", user("b"), []string{"user " + admin + " b"}},
		{"an empty list replaces the previous one", "", "", nil},
		{"deleted mappings do not come back", "- [", "- [", nil},
	} {
		m, _ := configMap(t, map[string]string{"mapRoles": step.roles, "mapUsers": step.users})
		last = m.Keep(last)
		compare(t, step.rule, allShown(last), step.want)
		for _, mapping := range last.All() {
			if found, ok := last.Find(mapping.ARN, "", iam.Exact); !ok || found.Username != mapping.Username {
				t.Errorf("%s: %s finds %+v", step.rule, mapping.ARN, found)
			}
		}
	}
}

func TestDeletedConfigMapHasNoMappings(t *testing.T) {
	before, _ := configMap(t, map[string]string{"mapRoles": "- {rolearn: " + node + ", username: a}"})
	after, _ := configMap(t, nil)
	if kept := after.Keep(before); len(kept.All()) > 0 {
		t.Errorf("kept %v", kept.All())
	}
}

func TestExpansionOfAliasesIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("- &a\n  rolearn: " + node + "\n  username: a\n  groups: &g [" + strings.Repeat("g,", 10_000) + "]\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "- {rolearn: '%s%d', username: a, groups: *g}\n", node, i)
	}
	m, findings := configMap(t, map[string]string{"mapRoles": text.String()})
	if len(m.Roles) > 0 || !slices.Equal(m.Broken, []string{"mapRoles"}) {
		t.Errorf("%d roles, broken %v", len(m.Roles), m.Broken)
	}
	if len(findings) != 1 || findings[0].Code != iam.MappingTooLarge {
		t.Errorf("findings %v", allFound(findings))
	}
}

func TestExpansionOfMergesIsBounded(t *testing.T) {
	text := "- &m0 {username: a}\n"
	for i := range 9 {
		text += fmt.Sprintf("- &m%d {<<: [%s]}\n", i+1, strings.Repeat(fmt.Sprintf("*m%d,", i), 50))
	}
	m, findings := configMap(t, map[string]string{"mapRoles": text})
	if !slices.Equal(m.Broken, []string{"mapRoles"}) || findings[0].Code != iam.MappingTooLarge {
		t.Errorf("broken %v, findings %v", m.Broken, allFound(findings))
	}
}

func TestLargeTextsAreNotRead(t *testing.T) {
	m, findings := configMap(t, map[string]string{"mapRoles": "#" + strings.Repeat(" ", 2<<20)})
	if !slices.Equal(m.Broken, []string{"mapRoles"}) || len(findings) != 1 || findings[0].Code != iam.MappingTooLarge {
		t.Errorf("broken %v, findings %v", m.Broken, allFound(findings))
	}
}

func TestFindingsAreLimited(t *testing.T) {
	_, findings := configMap(t, map[string]string{"mapRoles": strings.Repeat("- a\n", 5000)})
	last := findings[len(findings)-1]
	if len(findings) != 1001 || last.Code != iam.MappingMoreFindings || !strings.Contains(last.Message, "4000 more") {
		t.Errorf("%d findings, the last one is %v", len(findings), last)
	}
}
