package iam_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

func TestTemplates(t *testing.T) {
	values := map[string]string{
		"EC2PrivateDNSName": "ip-10-0-0-1.eu-west-1.compute.internal",
		"AccountID":         "111122223333",
		"SessionName":       "ann-example.com",
		"SessionNameRaw":    "{{AccessKeyID}}",
		"AccessKeyID":       "AKIAIOSFODNN7EXAMPLE",
	}
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"admin", "admin"},
		{"{a}", "{a}"},
		{"a{", "a{"},
		{"system:node:{{EC2PrivateDNSName}}", "system:node:ip-10-0-0-1.eu-west-1.compute.internal"},
		{"{{AccountID}}:{{SessionName}}:{{AccountID}}", "111122223333:ann-example.com:111122223333"},
		{"a{{SessionNameRaw}}b", "a{{AccessKeyID}}b"},
		{"{{AccessKeyID}}", "AKIAIOSFODNN7EXAMPLE"},
	} {
		template, err := iam.ParseTemplate(tc.text)
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		got, err := template.Expand(func(placeholder string) (string, error) { return values[placeholder], nil })
		if got != tc.want || err != nil {
			t.Errorf("%q becomes %q, %v, want %q", tc.text, got, err, tc.want)
		}
		if template.String() != tc.text {
			t.Errorf("%q is written %q", tc.text, template)
		}
		for placeholder := range values {
			if template.Uses(placeholder) != strings.Contains(tc.text, "{{"+placeholder+"}}") {
				t.Errorf("%q uses %s: %v", tc.text, placeholder, template.Uses(placeholder))
			}
		}
		if template.UsesSession() != strings.ContainsAny(tc.text, "2S") {
			t.Errorf("%q uses the session: %v", tc.text, template.UsesSession())
		}
	}
}

func TestInvalidPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"{{ EC2PrivateDNSName }}": `"{{ EC2PrivateDNSName }}" has spaces between its braces: write {{EC2PrivateDNSName}}`,
		"{{Session Name}}":        `"{{Session Name}}" has spaces between its braces: write {{SessionName}}`,
		"{{sessionname}}":         `"{{sessionname}}" is not a placeholder: write {{SessionName}}`,
		"{{ sessionname }}":       `"{{ sessionname }}" is not a placeholder: write {{SessionName}}`,
		"{{{SessionName}}}":       `"{{{SessionName}}" is not a placeholder: write {{SessionName}}`,
		"a{{SessionName":          `"{{SessionName" is not a placeholder: write {{SessionName}}`,
		"{{SessionName}":          `"{{SessionName}" is not a placeholder: write {{SessionName}}`,
		"{SessionName}}":          `"{SessionName}}" is not a placeholder: write {{SessionName}}`,
		"{{SessionName}}}}": `"}}" is not a placeholder: want one of {{EC2PrivateDNSName}}, {{AccountID}}, ` +
			`{{SessionName}}, {{SessionNameRaw}}, {{AccessKeyID}}`,
		"{{}}": `"{{}}" is not a placeholder: want one of {{EC2PrivateDNSName}}, {{AccountID}}, ` +
			`{{SessionName}}, {{SessionNameRaw}}, {{AccessKeyID}}`,
		"{{Sesſion{{SessionName}}": `"{{Sesſion{{SessionName}}" is not a placeholder: want one of {{EC2PrivateDNSName}}, ` +
			`{{AccountID}}, {{SessionName}}, {{SessionNameRaw}}, {{AccessKeyID}}`,
	} {
		_, err := iam.ParseTemplate(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestErrorsOfValuesAreReturned(t *testing.T) {
	template, err := iam.ParseTemplate("a{{SessionName}}{{SessionName}}")
	if err != nil {
		t.Fatal(err)
	}
	cause, asked := errors.New("no session"), 0
	_, err = template.Expand(func(string) (string, error) { asked++; return "", cause })
	if !errors.Is(err, cause) || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	_, err = template.Expand(func(string) (string, error) { asked++; return "x", nil })
	if err != nil || asked != 2 {
		t.Errorf("%v, asked %d times for a placeholder that occurs twice", err, asked-1)
	}
}

func TestReserved(t *testing.T) {
	r := iam.DefaultReserved()
	custom := iam.Reserved{Prefixes: []string{"", "corp:"}, GrantedUsernames: []string{"corp:ann"}, GrantedGroups: []string{"corp:teams:"}}
	for _, tc := range []struct {
		name            string
		reserved        iam.Reserved
		username, group bool
	}{
		{"ann", r, true, true},
		{"", r, true, true},
		{"system", r, true, true},
		{"System:masters", r, true, true},
		{"system:masters", r, false, true},
		{"system:nodes", r, false, true},
		{"system:nodes2", r, false, false},
		{"system:node-proxier", r, false, true},
		{"system:bootstrappers", r, false, true},
		{"system:bootstrappers:kubeadm:default-node-token", r, false, false},
		{"system:bootstrappers - system:nodes", r, false, false},
		{"system:node:worker-1", r, true, false},
		{"system:node:", r, false, false},
		{"system:kube-controller-manager", r, false, false},
		{"system:serviceaccount:kube-system:x", r, false, false},
		{"system:authenticated", r, false, false},
		{"system:masters", custom, true, true},
		{"corp:ann", custom, true, false},
		{"corp:ann2", custom, false, false},
		{"corp:teams:a", custom, false, true},
		{"corp:teams:", custom, false, false},
		{"system:masters", iam.Reserved{}, true, true},
	} {
		if err := tc.reserved.Username(tc.name); (err == nil) != tc.username {
			t.Errorf("username %q: %v", tc.name, err)
		}
		if err := tc.reserved.Group(tc.name); (err == nil) != tc.group {
			t.Errorf("group %q: %v", tc.name, err)
		}
	}
}
