package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageWidth is where the descriptions of flags are wrapped.
const usageWidth = 100

// usage writes how a command is used, its own flags before those of the
// connection.
func usage(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "Usage:\n  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-*s  %s\n", c.NamePadding(), c.Name(), c.Short)
			}
		}
		fmt.Fprintf(out, "\nUse '%s COMMAND --help' for more about a command.\n", cmd.CommandPath())
		return nil
	}
	fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	own, connection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[connectionFlag]; ok {
			connection.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	fmt.Fprintf(out, "\nFlags:\n%s", own.FlagUsagesWrapped(usageWidth))
	if connection.HasFlags() {
		fmt.Fprintf(out, "\nConnection, as in kubectl:\n%s", connection.FlagUsagesWrapped(usageWidth))
	}
	return nil
}

// newHelp is cobra's help command, but does not take a topic that it does not
// know for success.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print what a command does and how it is used",
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = noCommand(root, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}
