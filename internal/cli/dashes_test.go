package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

func TestFlagsWithOneDash(t *testing.T) {
	a := &command.App{Streams: command.NewStreams(strings.NewReader(""), io.Discard, io.Discard)}
	root := root(a, "node-authorizer")
	for rule, test := range map[string]struct{ args, want []string }{
		"with a value": {[]string{"server", "-authorizer=aws"}, []string{"server", "--authorizer=aws"}},
		"with a value after it": {
			[]string{"client", "-node-url", "https://x", "-timeout", "5m"},
			[]string{"client", "--node-url", "https://x", "--timeout", "5m"},
		},
		"repeated": {
			[]string{"server", "-feature=verify-ip", "-feature=verify-registration"},
			[]string{"server", "--feature=verify-ip", "--feature=verify-registration"},
		},
		"with two":                   {[]string{"server", "--authorizer=aws"}, []string{"server", "--authorizer=aws"}},
		"with a letter":              {[]string{"server", "-v", "2", "-v2"}, []string{"server", "-v", "2", "-v2"}},
		"an unknown flag":            {[]string{"server", "-author=aws"}, []string{"server", "-author=aws"}},
		"after the end of the flags": {[]string{"client", "--", "-timeout"}, []string{"client", "--", "-timeout"}},
		"of another command":         {[]string{"can-i", "-node=x"}, []string{"can-i", "-node=x"}},
		"none":                       {nil, nil},
	} {
		before := slices.Clone(test.args)
		if got := doubleDashes(root, test.args); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", rule, got, test.want)
		}
		if !slices.Equal(test.args, before) {
			t.Errorf("%s: the arguments were changed", rule)
		}
	}
}
