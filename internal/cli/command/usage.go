package command

import (
	"cmp"
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

func (a *App) Help(cmd *cobra.Command, _ []string) {
	for _, line := range a.paragraphs(a.named(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)))) {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	fmt.Fprintln(cmd.OutOrStdout())
	_ = a.Usage(cmd)
}

// named puts the program's name as the user writes it into a text.
func (a *App) named(text string) string {
	if a.Invoked == nil {
		return text
	}
	return a.Invoked(text)
}

// paragraphs returns the lines of a text. If the terminal is too narrow for them, the lines of
// each paragraph are joined and broken again; indented lines stay.
func (a *App) paragraphs(text string) []string {
	lines := strings.Split(text, "\n")
	if a.Width == 0 || a.Width >= helpWidth {
		return lines
	}
	var fitted []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			fitted = append(fitted, render.Wrap(paragraph, a.Width, 0)...)
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

// Acts reports whether a command does something itself, and does not only have others below it.
func Acts(cmd *cobra.Command) bool { return !cmd.HasAvailableSubCommands() || cmd.Use != cmd.Name() }

// Usage writes the usage of a command, with its own flags before those with a heading.
func (a *App) Usage(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if !Acts(cmd) {
		fmt.Fprintf(out, "Usage:\n  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				name := fmt.Sprintf("  %-*s  ", c.NamePadding(), c.Name())
				fmt.Fprintln(out, strings.Join(render.Wrap(name+c.Short, a.Width, len(name)), "\n"))
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
	if a.Width > 0 {
		width = min(width, a.Width)
	}
	headings, groups := GroupFlags(cmd)
	for _, heading := range headings {
		fmt.Fprintf(out, "\n%s:\n%s", heading, a.named(groups[heading].FlagUsagesWrapped(width)))
	}
	return nil
}

// FlagHeading annotates flags that the help lists under a separate heading.
const FlagHeading = "heading"

// GroupFlags returns a command's flags by heading, its own first.
func GroupFlags(cmd *cobra.Command) (headings []string, groups map[string]*pflag.FlagSet) {
	headings, groups = []string{"Flags"}, map[string]*pflag.FlagSet{"Flags": pflag.NewFlagSet("", pflag.ContinueOnError)}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if marked := f.Annotations[FlagHeading]; len(marked) == 1 {
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

// NewGroup returns a command that only has others below it.
func NewGroup(name, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}

// NewHelp is cobra's help command, except that it fails for an unknown topic.
func NewHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print what a command does and how it is used",
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = NoCommand(root, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}
