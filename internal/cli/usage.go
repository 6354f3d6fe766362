package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// usageWidth is the column at which descriptions of flags are wrapped, and helpWidth the longest
// line of what commands do. Narrower terminals wrap before.
const (
	usageWidth = 100
	helpWidth  = 90
)

// help writes what a command does and its usage.
func (a *app) help(cmd *cobra.Command, _ []string) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	for _, line := range a.paragraphs(a.named(strings.TrimSpace(text))) {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	fmt.Fprintln(cmd.OutOrStdout())
	_ = a.usage(cmd)
}

// named puts the program's name as the user writes it into a text.
func (a *app) named(text string) string {
	if a.invoked == nil {
		return text
	}
	return a.invoked(text)
}

// paragraphs returns the lines of a text. If the terminal is too narrow for them, the lines of
// each paragraph are joined and broken again; indented lines stay.
func (a *app) paragraphs(text string) []string {
	lines := strings.Split(text, "\n")
	if a.width == 0 || a.width >= helpWidth {
		return lines
	}
	var fitted []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			fitted = append(fitted, render.Wrap(paragraph, a.width, 0)...)
		}
		paragraph = ""
	}
	for _, line := range lines {
		switch {
		case line == "" || strings.HasPrefix(line, " "):
			end()
			fitted = append(fitted, line)
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	end()
	return fitted
}

// acts reports whether a command does something itself, and does not only have others below it.
func acts(cmd *cobra.Command) bool { return !cmd.HasAvailableSubCommands() || cmd.Use != cmd.Name() }

// usage writes the usage of a command, with its own flags before those with a heading.
func (a *app) usage(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if !acts(cmd) {
		fmt.Fprintf(out, "Usage:\n  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				name := fmt.Sprintf("  %-*s  ", c.NamePadding(), c.Name())
				fmt.Fprintln(out, strings.Join(render.Wrap(name+c.Short, a.width, len(name)), "\n"))
			}
		}
		fmt.Fprintf(out, "\nUse '%s COMMAND --help' for more about a command.\n", cmd.CommandPath())
		return nil
	}
	fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(out, "  %s\n", c.UseLine())
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", a.named(cmd.Example))
	}
	width := usageWidth
	if a.width > 0 {
		width = min(width, a.width)
	}
	headings, groups := groupFlags(cmd)
	for _, heading := range headings {
		fmt.Fprintf(out, "\n%s:\n%s", heading, a.named(groups[heading].FlagUsagesWrapped(width)))
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
