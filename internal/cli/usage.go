package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageWidth is the column at which descriptions of flags are wrapped.
const usageWidth = 100

// usage writes the usage of a command, with its own flags before those with a heading.
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
	headings, groups := groupFlags(cmd)
	for _, heading := range headings {
		fmt.Fprintf(out, "\n%s:\n%s", heading, groups[heading].FlagUsagesWrapped(usageWidth))
	}
	return nil
}

// flagHeading annotates flags that the help lists under a separate heading.
const flagHeading = "heading"

// groupFlags returns a command's flags by heading, its own first.
func groupFlags(cmd *cobra.Command) (headings []string, groups map[string]*pflag.FlagSet) {
	headings, groups = []string{"Flags"}, map[string]*pflag.FlagSet{"Flags": pflag.NewFlagSet("", pflag.ContinueOnError)}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if marked := f.Annotations[flagHeading]; len(marked) == 1 {
			heading = marked[0]
		}
		if groups[heading] == nil {
			headings = append(headings, heading)
			groups[heading] = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
		groups[heading].AddFlag(forHelp(cmd.Name(), f))
	})
	return headings, groups
}

// newHelp is cobra's help command, except that it fails for an unknown topic.
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
