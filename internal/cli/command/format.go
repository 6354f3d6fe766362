package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// FormatFlag is -o with the formats that a command supports, the default first.
type FormatFlag struct {
	fit  []render.Format
	text string
	cmd  *cobra.Command
}

// AddFormat adds -o with the formats that fit the command. The first one is the default.
func AddFormat(cmd *cobra.Command, fit ...render.Format) *FormatFlag {
	f := &FormatFlag{fit: fit, cmd: cmd}
	cmd.Flags().StringVarP(&f.text, "output", "o", string(fit[0]), "output format: "+render.List(fit))
	Must(cmd.RegisterFlagCompletionFunc("output", Complete(func() []string { return render.FormatNames(fit) })))
	return f
}

// RunE sets what the command does, with the format, which is checked before.
func (f *FormatFlag) RunE(run func(cmd *cobra.Command, args []string, format render.Format) error) {
	f.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := render.ParseFormat(f.text, f.fit)
		if err != nil {
			return Usagef("%w", err)
		}
		if format == render.HTML && isTerminal(cmd.OutOrStdout()) {
			return Usagef("-o html writes a page for a browser: write it to a file, as with > %s.html", cmd.Name())
		}
		return run(cmd, args, format)
	}
}

// Complete completes to fixed words.
func Complete(words func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNothing makes a shell offer nothing for flags, instead of files.
func CompleteNothing(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		Must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
}

// Must panics on errors of registrations, which only fail because of a bug.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Some returns the first three names, or all.
func Some(names []string, all bool) string {
	const few = 3
	if all {
		return strings.Join(names, ", ")
	}
	return render.Names(names, few)
}
