package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashes lets server and client accept flags with one dash, as kops' node-authorizer did
// (-authorizer=aws), because its unit files and manifests may use that form. Other commands
// did not exist there.
func doubleDashes(root *cobra.Command, args []string) []string {
	if len(args) == 0 || args[0] != "server" && args[0] != "client" {
		return args
	}
	command, _, err := root.Find(args[:1])
	if err != nil {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args[1:] {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && len(name) > 1 && command.Flags().Lookup(name) != nil {
			args[i+1] = "-" + arg
		}
	}
	return args
}
