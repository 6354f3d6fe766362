package iam_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

func TestCanonical(t *testing.T) {
	for _, tc := range []struct{ rule, arn, canonical, session string }{
		{"a role", "arn:aws:iam::111122223333:role/node", "arn:aws:iam::111122223333:role/node", ""},
		{"a role with a path", "arn:aws:iam::111122223333:role/teams/a/node", "arn:aws:iam::111122223333:role/teams/a/node", ""},
		{"a user", "arn:aws:iam::111122223333:user/ann", "arn:aws:iam::111122223333:user/ann", ""},
		{"a user with a path", "arn:aws:iam::111122223333:user/teams/a/ann", "arn:aws:iam::111122223333:user/teams/a/ann", ""},
		{"root", "arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:root", ""},
		{"a federated user", "arn:aws:sts::111122223333:federated-user/ann", "arn:aws:sts::111122223333:federated-user/ann", ""},
		{
			"a session", "arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0",
			"arn:aws:iam::111122223333:role/node", "i-0123456789abcdef0",
		},
		{
			"a session with a name like an address", "arn:aws:sts::111122223333:assumed-role/admin/ann@corp.example",
			"arn:aws:iam::111122223333:role/admin", "ann@corp.example",
		},
		{
			"a session of a role with a path, which STS omits", "arn:aws:sts::111122223333:assumed-role/teams/a/node/s",
			"arn:aws:iam::111122223333:role/teams/a/node", "s",
		},
		{
			"all characters of names", "arn:aws:sts::111122223333:assumed-role/a_b+c=d,e.f@g-h/i_j+k=l,m.n@o-p",
			"arn:aws:iam::111122223333:role/a_b+c=d,e.f@g-h", "i_j+k=l,m.n@o-p",
		},
		{"the GovCloud", "arn:aws-us-gov:sts::111122223333:assumed-role/node/s", "arn:aws-us-gov:iam::111122223333:role/node", "s"},
		{"China", "arn:aws-cn:iam::111122223333:user/ann", "arn:aws-cn:iam::111122223333:user/ann", ""},
		{"a role that is called root", "arn:aws:iam::111122223333:role/root", "arn:aws:iam::111122223333:role/root", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			canonical, session, err := iam.Canonical(tc.arn)
			if err != nil || canonical != tc.canonical || session != tc.session {
				t.Errorf("got %q, %q, %v", canonical, session, err)
			}
			again, session, err := iam.Canonical(canonical)
			if err != nil || again != canonical || session != "" {
				t.Errorf("canonicalized again, it is %q, %q, %v", again, session, err)
			}
		})
	}
}

func TestCanonicalRejectsARNsOfNoCaller(t *testing.T) {
	for rule, arn := range map[string]string{
		"nothing":                       "",
		"not an ARN":                    "node",
		"too few parts":                 "arn:aws:iam:111122223333:role/node",
		"another prefix":                "urn:aws:iam::111122223333:role/node",
		"no partition":                  "arn::iam::111122223333:role/node",
		"no service":                    "arn:aws:::111122223333:role/node",
		"no resource":                   "arn:aws:iam::111122223333:",
		"no account":                    "arn:aws:iam:::role/node",
		"an account of AWS's own":       "arn:aws:iam::aws:policy/AdministratorAccess",
		"an account that is too short":  "arn:aws:iam::11112222333:role/node",
		"an account that is too long":   "arn:aws:iam::1111222233334:role/node",
		"an account with other digits":  "arn:aws:iam::11112222333\u0663:role/node",
		"a region":                      "arn:aws:iam:eu-west-1:111122223333:role/node",
		"another service":               "arn:aws:ec2::111122223333:instance/i-0123456789abcdef0",
		"another kind":                  "arn:aws:iam::111122223333:group/admins",
		"another kind of STS":           "arn:aws:sts::111122223333:self",
		"a role of STS":                 "arn:aws:sts::111122223333:role/node",
		"a session of IAM":              "arn:aws:iam::111122223333:assumed-role/node/s",
		"a role without a name":         "arn:aws:iam::111122223333:role/",
		"a role with a path only":       "arn:aws:iam::111122223333:role/teams/",
		"a role with two slashes":       "arn:aws:iam::111122223333:role//node",
		"a session without a role":      "arn:aws:sts::111122223333:assumed-role/s",
		"a session with an empty role":  "arn:aws:sts::111122223333:assumed-role//s",
		"a session with an empty name":  "arn:aws:sts::111122223333:assumed-role/node/",
		"a federated user with a path":  "arn:aws:sts::111122223333:federated-user/a/b",
		"a federated user with no name": "arn:aws:sts::111122223333:federated-user/",
		"more than root":                "arn:aws:iam::111122223333:root/x",
		"a kind in another case":        "arn:aws:iam::111122223333:Role/node",
		"a colon in a name":             "arn:aws:iam::111122223333:user/system:masters",
		"a template in a name":          "arn:aws:sts::111122223333:assumed-role/node/{{AccountID}}",
		"a space":                       "arn:aws:iam::111122223333:user/an n",
		"a space after it":              "arn:aws:iam::111122223333:user/ann ",
		"a line break after it":         "arn:aws:iam::111122223333:user/ann\n",
		"a zero byte":                   "arn:aws:iam::111122223333:user/ann\x00",
		"letters of another alphabet":   "arn:aws:iam::111122223333:user/\u0430nn",
		"invalid UTF-8":                 "arn:aws:iam::111122223333:user/ann\xff",
		"a wildcard":                    "arn:aws:iam::111122223333:role/*",
	} {
		t.Run(rule, func(t *testing.T) {
			if canonical, session, err := iam.Canonical(arn); err == nil || canonical != "" || session != "" {
				t.Errorf("got %q, %q, %v", canonical, session, err)
			} else if !utf8.ValidString(err.Error()) || strings.IndexFunc(err.Error(), unicode.IsControl) >= 0 {
				t.Errorf("the error is not one line: %q", err)
			}
		})
	}
}

func TestParseARN(t *testing.T) {
	const text = "arn:aws:iam::111122223333:role/teams/a/node:x"
	got, err := iam.ParseARN(text)
	want := iam.ARN{Partition: "aws", Service: "iam", Account: "111122223333", Resource: "role/teams/a/node:x"}
	if err != nil || got != want || got.String() != text || got.Name() != "node:x" {
		t.Errorf("got %+v, name %q, %v", got, got.Name(), err)
	}
}
