package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashes lets server and client take their flags with one dash too, as the
// node-authorizer of kops did (-authorizer=aws): its unit files and manifests may
// be written so. Other commands have no flags that were ever written so.
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
