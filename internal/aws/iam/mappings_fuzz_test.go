package iam_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// dropping returns the codes of entries that are left out.
func dropping() []finding.Code {
	return []finding.Code{iam.MappingInvalid, iam.MappingTemplateUnknown, iam.MappingTemplateSpaced, iam.MappingDuplicate}
}

// FuzzParseConfigMap checks that every mapping of an arbitrary text can be used, is in
// the text and was not reported as left out, and that every finding is on an existing
// line.
func FuzzParseConfigMap(f *testing.F) {
	f.Add("- {rolearn: "+node+", username: a, groups: [b]}", "- {userarn: "+admin+", username: '{{SessionName}}'}", "- 111122223333")
	f.Add("- &a {rolearn: "+node+", username: a}\n- <<: [*a, *a]\n  groups: &g [x, y]\n- *a\n---\n- b",
		"- userarn: "+admin+"\n\tusername: a", "- 012345678901\n- ~\n- [a]")
	f.Add("- rolearn: "+node+"\r\n  username: |\r\n   a\r\n", "\ufeff- &a\n  <<: *a", "``")
	f.Add("a: b", "[{", "# \u2028\u0085\r- *x")
	f.Add("- {rolearn: "+node+", username: a}\n- {rolearn: "+node+", username: a, groups: b}",
		"- <<: {groups: [x]}\n  userarn: "+node+"\n  username: a\n  Groups: [y]", "- 111122223333")
	f.Add("- {rolearn: "+node+", username: a}", "- {userarn: "+node+", username: a}", "")
	f.Add("- {rolearn: "+node+"}", "- {userarn: "+node+", username: a}", "")
	f.Add("- {rolearn: "+node+", RoleARN: "+admin+", username: 'a '}", "- {rolearn: "+node+", username: 'system:node:'}", "")
	f.Fuzz(func(t *testing.T, roles, users, accounts string) {
		data := map[string]string{"mapRoles": roles, "mapUsers": users, "mapAccounts": accounts}
		m, findings := iam.ParseConfigMap(data, "aws-auth", awsAuth)
		left := map[string]bool{}
		for _, f := range findings {
			inText(t, f.Place, data)
			if strings.ContainsAny(f.String()+f.Consequence+f.Remedy, "\n\r\x00") {
				t.Errorf("not one line: %q", f.String())
			}
			// A user who is also in the list of roles, which is tried first, stays in the list of users.
			shadowed := f.Code == iam.MappingDuplicate && strings.HasPrefix(f.Place.Key, "data.mapUsers") &&
				strings.Contains(f.Message, "data.mapRoles")
			if entry, _, ok := strings.Cut(f.Place.Key, "]"); ok && slices.Contains(dropping(), f.Code) && !shadowed {
				left[entry+"]"] = true
			}
		}
		for _, mapping := range m.All() {
			inText(t, mapping.Place, data)
			if left[mapping.Place.Key] {
				t.Errorf("%s is kept and left out", mapping.Place)
			}
			usable(t, m, mapping)
		}
		hides(t, m)
		for _, list := range m.Broken {
			if slices.ContainsFunc(m.All(), func(m iam.Mapping) bool { return strings.HasPrefix(m.Place.Key, "data."+list) }) {
				t.Errorf("%s is broken, and has mappings", list)
			}
		}
		again, foundAgain := iam.ParseConfigMap(data, "aws-auth", awsAuth)
		if !reflect.DeepEqual(m.All(), again.All()) || !slices.Equal(findings, foundAgain) {
			t.Error("a second read differs")
		}
	})
}

// inText checks that a place exists in its text.
func inText(t *testing.T, place finding.Place, data map[string]string) {
	t.Helper()
	key, _, _ := strings.Cut(strings.TrimPrefix(place.Key, "data."), "[")
	text, ok := data[key]
	if lines := strings.Count(text, "\n") + 1; !ok || place.KeyLine < 1 || place.KeyLine > lines {
		t.Errorf("%s is on no line of %q", place, text)
	}
}

// usable checks that a mapping can be used, and that its caller gets it or one that takes
// precedence.
func usable(t *testing.T, m *iam.Mappings, mapping iam.Mapping) {
	t.Helper()
	if mapping.Kind == iam.AccountMapping {
		if _, ok := m.Find("", mapping.Account, iam.Exact); !ok {
			t.Errorf("no caller finds %+v", mapping)
		}
		return
	}
	if _, _, err := iam.Canonical(strings.ToLower(mapping.ARN)); err != nil || mapping.Username == "" {
		t.Errorf("%+v: %v", mapping, err)
	}
	for _, text := range append(mapping.Groups, mapping.Username) {
		if _, err := iam.ParseTemplate(text); text == "" || err != nil {
			t.Errorf("%+v: %q: %v", mapping, text, err)
		}
	}
	found, ok := m.Find(mapping.ARN, "", iam.Exact)
	if ok && found.Unusable && mapping.Kind == iam.UserMapping && found.Kind == iam.RoleMapping {
		return // hidden by an entry of the list that is tried first
	}
	if !ok || found.Kind == mapping.Kind && !reflect.DeepEqual(found, mapping) {
		t.Errorf("%+v finds %+v", mapping, found)
	}
}

// hides checks that the caller of an unusable entry gets that entry, or one of a list
// that is tried first, and no other one in its list.
func hides(t *testing.T, m *iam.Mappings) {
	t.Helper()
	for _, entry := range m.Unusable {
		if entry.Username != "" || len(entry.Groups) > 0 || !entry.Unusable {
			t.Errorf("%+v gives something", entry)
		}
		found, ok := m.Find(entry.ARN, "111122223333", iam.Exact)
		if !ok || !found.Unusable && (entry.Kind == iam.RoleMapping || found.Kind != iam.RoleMapping) {
			t.Errorf("%+v finds %+v", entry, found)
		}
	}
}

// FuzzParseFile checks that every mapping has a line, and that broken lists are empty.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte("mapRoles: [{rolearn: " + node + ", username: a}]\nserver:\n  mapUsers: [{userarn: " + admin + ", username: b}]\n"))
	f.Add([]byte("mapRoles: &a []\nMapRoles: *a\nmapAccounts: [012345678901]\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, findings := iam.ParseFile(text, "mappings.yaml")
		lines := strings.Count(string(text), "\n") + 1
		for _, f := range findings {
			if f.Place.Line < 1 || f.Place.Line > lines {
				t.Errorf("%s is on no line of %q", f, text)
			}
		}
		for _, mapping := range m.All() {
			if mapping.Place.Line < 1 || mapping.Place.Line > lines {
				t.Errorf("%+v is on no line of %q", mapping, text)
			}
			usable(t, m, mapping)
		}
		if len(m.Broken) > 0 && len(findings) == 0 {
			t.Errorf("broken %v without a finding", m.Broken)
		}
	})
}

// FuzzTemplate checks that a template is rendered as it was written, and that values are
// inserted verbatim.
func FuzzTemplate(f *testing.F) {
	f.Add("system:node:{{EC2PrivateDNSName}}", "ip-10-0-0-1")
	f.Add("{{SessionName}}{{SessionNameRaw}}", "{{AccountID}}")
	f.Add("{{ SessionName }}", "}}")
	f.Add("{{{AccountID}}}", "")
	f.Fuzz(func(t *testing.T, text, value string) {
		template, err := iam.ParseTemplate(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an empty error")
			}
			return
		}
		if template.String() != text {
			t.Fatalf("%q is written %q", text, template)
		}
		want := text
		marks := map[string]string{}
		for i, placeholder := range iam.Placeholders() {
			mark := fmt.Sprintf("\x00%d\x00", i)
			if strings.Contains(text, mark) {
				return
			}
			marks[placeholder] = mark
			want = strings.ReplaceAll(want, "{{"+placeholder+"}}", mark)
		}
		for _, mark := range marks {
			want = strings.ReplaceAll(want, mark, value)
			if strings.Contains(value, "\x00") {
				return
			}
		}
		got, err := template.Expand(func(string) (string, error) { return value, nil })
		if err != nil || got != want {
			t.Errorf("%q with %q becomes %q, %v, want %q", text, value, got, err, want)
		}
	})
}
