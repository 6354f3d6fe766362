package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// AddWatch adds --watch to a command whose RunE is set: the command answers again at an interval, and prints the answers
// that differ from the one before. Not are flags of the command that cannot be given with it.
func AddWatch(a *App, cmd *cobra.Command, not ...string) {
	w := watch{App: a, after: time.After}
	on := cmd.Flags().Bool("watch", false,
		"answer again at an interval, and print an answer that differs from the one before, with the time; an interrupt ends it")
	cmd.Flags().DurationVar(&w.interval, "watch-interval", 30*time.Second, "time between two answers of --watch, from 1s to 24h")
	CompleteNothing(cmd, "watch-interval")
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*on && cmd.Flags().Changed("watch-interval") {
			return Usagef("--watch-interval has no effect without --watch: add it")
		}
		if !*on || a.Part.Watched {
			return once(cmd, args)
		}
		w.format = render.Format(cmd.Flag("output").Value.String())
		if !slices.Contains([]render.Format{render.Table, render.Wide, render.JSON, render.YAML}, w.format) {
			return Usagef("-o %s does not go with --watch: want table, wide, json or yaml", w.format)
		}
		if err := checkAgain(cmd, "--watch", not); err != nil {
			return err
		}
		return w.run(cmd.Context())
	}
}

// checkAgain refuses flags that do not go with what runs the command line again, and the standard input.
func checkAgain(cmd *cobra.Command, with string, not []string) error {
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok && slices.Contains(list.GetSlice(), StdinName) {
			wrong = Usagef("--%s -: %s reads again, and stdin can be read once: name a file", f.Name, with)
		}
		if slices.Contains(not, f.Name) {
			wrong = Usagef("--%s does not go with %s: remove one of them", f.Name, with)
		}
	})
	return wrong
}

type watch struct {
	*App
	format   render.Format
	interval time.Duration
	after    func(time.Duration) <-chan time.Time
}

// NoAnswer stands for an answer of --watch that could not be had.
type NoAnswer struct {
	// Error says why.
	Error string `json:"error"`
}

func (NoAnswer) DocumentKind() string { return "NoAnswer" }

func (n NoAnswer) Text(p *render.Page) { p.Line("%s: %s", Unknown, n.Error) }

// run ends with the error of the first answer, or of the context. A later answer that fails is unknown: it differs from
// the answer before, but not from another unknown answer, whose error may differ in a port only.
func (w watch) run(ctx context.Context) error {
	before := ""
	for first := true; ; first = false {
		var out, errOut bytes.Buffer
		s := w.Streams
		s.Out, s.ErrOut, s.live = &out, &errOut, false
		part := w.part(s, Part{Watched: true})
		err := part.Execute(ctx, part)
		date := part.Metadata.Date
		answer := errOut.String() + "\x00" + strings.ReplaceAll(out.String(), date, "")
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && first:
			_, writeErr := w.ErrOut.Write(errOut.Bytes())
			return errors.Join(err, writeErr)
		case err != nil:
			answer = Unknown
			out.Reset()
			if err := part.Write(NoAnswer{render.Printable(OneLine(err).Error())}, w.format); err != nil {
				return err
			}
		}
		if answer != before {
			if _, err := fmt.Fprintf(w.Out, "%s%s", w.head(date, first), out.Bytes()); err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
			if _, err := w.ErrOut.Write(errOut.Bytes()); err != nil {
				return fmt.Errorf("writing warnings: %w", err)
			}
			before = answer
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.after(w.interval):
		}
	}
}

// head separates an answer from the one before, and has the time of a table.
func (w watch) head(date string, first bool) string {
	switch {
	case w.format == render.JSON || w.format == render.YAML && first:
		return ""
	case w.format == render.YAML:
		return "---\n"
	case first:
		return date + "\n"
	}
	return "\n" + date + "\n"
}
