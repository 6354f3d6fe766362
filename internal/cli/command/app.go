// Package command has what the commands share: the streams and the exit status of a run, flags and arguments, the
// state of a cluster that flags name (a Session), and how results, errors and missing state are written.
package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Exit statuses.
const (
	StatusAllowed   = 0
	StatusDenied    = 1
	StatusUndecided = 2
	// StatusInterrupted is 128 and the number of SIGINT, as shells have it.
	StatusInterrupted = 130
)

// The answers to a question.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// AnswerStyle is the style in which an answer is shown.
func AnswerStyle(answer string) render.Style {
	return map[string]render.Style{Yes: render.Good, No: render.Bad, Unknown: render.Unsure}[answer]
}

// App is one run of the command line.
type App struct {
	Streams
	// Status is the exit status of a command that returns no error.
	Status int
	// Execute runs the command line from the beginning.
	Execute func(context.Context, *App) error
	// Part says which part of a run this is; zero for all of it.
	Part Part
	// Result is what Write was given, if the part is about one of several clusters.
	Result any
	// Now is the clock.
	Now func() time.Time
	// Metadata goes into each document. What is read is noted in it. Without it, documents have none.
	Metadata *render.Metadata
}

// Part says how one of the runs of a command line that is run again differs from a run of its own.
type Part struct {
	// Watched is true for one answer of --watch.
	Watched bool
	// Context is the context that is asked, of several; empty for all.
	Context string
}

// NewApp returns a run of a command line, whose first argument is the name of the program.
func NewApp(streams Streams, args []string, now func() time.Time) *App {
	return &App{
		Streams: streams, Now: now,
		Metadata: render.NewMetadata(now(), CurrentVersion().Version, commandLine(args)),
	}
}

// part returns a run of the same command line, with other streams. The time stands still in it.
func (a *App) part(s Streams, p Part) *App {
	now := a.Now()
	metadata := render.NewMetadata(now, a.Metadata.Version, a.Metadata.CommandLine)
	return &App{Streams: s, Execute: a.Execute, Part: p, Now: func() time.Time { return now }, Metadata: metadata}
}

// Write writes a result to stdout, with the metadata of the run. The result of one of several clusters is kept.
func (a *App) Write(result any, format render.Format) error {
	if a.Part.Context != "" {
		a.Result = result
		return nil
	}
	if format == render.HTML {
		return a.writePage(result)
	}
	return render.Write(a.Out, result, render.Options{
		Format: format, Colour: a.colour, Width: a.Width, Program: a.Invoked, Metadata: a.Metadata,
	})
}

// UsageError is an error in the command line itself.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

// Usagef returns a usage error: exit status 2, with a hint to the help. It wraps errors as fmt.Errorf does.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// NoCommand accepts no arguments: an argument that is not a command is a usage error.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	known := make([]string, 0, len(cmd.Commands()))
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return Usagef("unknown command %q%s", args[0], DidYouMean(args[0], known))
}

// AtLeastOne accepts arguments. Its error says which are missing.
func AtLeastOne(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s", missing)
		}
		return nil
	}
}

// Exactly accepts one argument per name. Its errors use the names.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return Usagef("%s is missing", strings.Join(names[len(args):], " "))
		}
		if len(args) > len(names) {
			return Usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

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

// FromEnvironment sets flags that are not on the command line from the environment. Names has
// the variable of each flag. An empty variable counts as unset.
func FromEnvironment(cmd *cobra.Command, names map[string]string) error {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		value := os.Getenv(names[flag])
		if value == "" || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Set(flag, value); err != nil {
			return Usagef("%s in the environment: %w", names[flag], FlagError(cmd, err))
		}
		if err := checkFlagValue(cmd, cmd.Flags().Lookup(flag)); err != nil {
			return Usagef("%s in the environment: %w", names[flag], err)
		}
	}
	return nil
}
