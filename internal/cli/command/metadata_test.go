package command

import "testing"

func TestCommandLinesHaveNoCredentials(t *testing.T) {
	for _, tc := range []struct {
		rule string
		args []string
		want string
	}{
		{
			"other arguments stay, quoted",
			[]string{"node-authorizer", "diff", "--with", "a b.yaml"},
			"node-authorizer diff --with 'a b.yaml'",
		},
		{"a flag with its value", []string{"node-authorizer", "reach", "--token=abc"}, "node-authorizer reach --token=REDACTED"},
		{"a flag before its value", []string{"node-authorizer", "--token", "abc", "reach"}, "node-authorizer --token REDACTED reach"},
		{"a password", []string{"node-authorizer", "--password", "abc"}, "node-authorizer --password REDACTED"},
		{"a token anywhere", []string{"node-authorizer", "x=eyJhbGci.eyJzdWIi.c2ln"}, "node-authorizer x=REDACTED"},
		{"a user in a URL", []string{"node-authorizer", "-s", "https://u:p@host"}, "node-authorizer -s https://REDACTED@host"},
	} {
		if got := commandLine(tc.args); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.rule, got, tc.want)
		}
	}
}
