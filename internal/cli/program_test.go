package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestTheProgramIsNamedAsItIsInvoked(t *testing.T) {
	root := &cobra.Command{}
	for _, name := range []string{"doctor", "can-i"} {
		root.AddCommand(&cobra.Command{Use: name})
	}
	for _, tc := range []struct{ rule, args0, text, want string }{
		{"by its own name", "/usr/bin/node-authorizer", "run node-authorizer doctor", "run node-authorizer doctor"},
		{"renamed", "na", "run node-authorizer doctor", "run node-authorizer doctor"},
		{"as a plugin", "/x/kubectl-node_authorizer", "run node-authorizer doctor --plan", "run kubectl node-authorizer doctor --plan"},
		{"as a plugin under another name", "kubectl-na", "run node-authorizer doctor", "run kubectl na doctor"},
		{"on Windows", "kubectl-node_authorizer.exe", "node-authorizer can-i get", "kubectl node-authorizer can-i get"},
		{
			"several times", "kubectl-node_authorizer", "node-authorizer can-i; (node-authorizer doctor)",
			"kubectl node-authorizer can-i; (kubectl node-authorizer doctor)",
		},
		{"once", "kubectl-node_authorizer", "kubectl node-authorizer can-i", "kubectl node-authorizer can-i"},
		{"only where a command follows", "kubectl-node_authorizer", "node-authorizer says that", "node-authorizer says that"},
		{"only whole words", "kubectl-node_authorizer", "my-node-authorizer doctor", "my-node-authorizer doctor"},
		{"only whole commands", "kubectl-node_authorizer", "node-authorizer doctoral", "node-authorizer doctoral"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := tc.text
			if invoked := asInvoked(programName([]string{tc.args0}), root); invoked != nil {
				got = invoked(got)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestProgramName(t *testing.T) {
	for arg, want := range map[string]string{
		"node-authorizer":                        "node-authorizer",
		"/usr/local/bin/node-authorizer":         "node-authorizer",
		"./na":                                   "node-authorizer",
		"/usr/local/bin/kubectl-node_authorizer": "kubectl node-authorizer",
		"kubectl-node_authorizer.exe":            "kubectl node-authorizer",
	} {
		if got := programName([]string{arg}); got != want {
			t.Errorf("%s: got %q, want %q", arg, got, want)
		}
	}
}
