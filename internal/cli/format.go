package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// formatFlag is -o with the formats that a command supports, the default first.
type formatFlag struct {
	fit  []render.Format
	text string
	cmd  *cobra.Command
}

func addFormat(cmd *cobra.Command, fit ...render.Format) *formatFlag {
	f := &formatFlag{fit: fit, cmd: cmd}
	cmd.Flags().StringVarP(&f.text, "output", "o", string(fit[0]), "output format: "+render.List(fit))
	must(cmd.RegisterFlagCompletionFunc("output", complete(func() []string {
		var names []string
		for _, format := range fit {
			names = append(names, string(format))
		}
		return names
	})))
	return f
}

// parse validates the format. It is called before any work is done.
func (f *formatFlag) parse() (render.Format, error) {
	format, err := render.ParseFormat(f.text, f.fit)
	if err != nil {
		return "", usagef("%w", err)
	}
	if format == render.HTML && isTerminal(f.cmd.OutOrStdout()) {
		return "", usagef("-o html writes a page for a browser: write it to a file, as with > %s.html", f.cmd.Name())
	}
	return format, nil
}

// runE sets what the command does, with the format.
func (f *formatFlag) runE(run func(cmd *cobra.Command, args []string, format render.Format) error) {
	f.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := f.parse()
		if err != nil {
			return err
		}
		return run(cmd, args, format)
	}
}

// complete completes to fixed words.
func complete(words func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNothing makes a shell offer nothing for flags, instead of files.
func completeNothing(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
}

// must panics on errors of registrations, which only fail because of a bug.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// some returns the first three names, or all.
func some(names []string, all bool) string {
	const few = 3
	if all {
		return strings.Join(names, ", ")
	}
	return render.Names(names, few)
}
