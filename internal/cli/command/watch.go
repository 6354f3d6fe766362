package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// AddWatch adds --watch to a command whose RunE is set: the command answers again at an interval, and prints the answers
// that differ from the one before. Not are flags of the command that cannot be given with it.
func AddWatch(a *App, cmd *cobra.Command, not ...string) {
	w := watch{Streams: a.Streams, now: time.Now, after: time.After}
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
		if format := cmd.Flag("output").Value.String(); format != string(render.Table) && format != string(render.Wide) {
			return Usagef("--watch prints tables: leave out -o %s", format)
		}
		if err := checkAgain(cmd, "--watch", not); err != nil {
			return err
		}
		return w.run(cmd.Context(), func(ctx context.Context, s Streams) error {
			_, err := a.again(ctx, s, Part{Watched: true})
			return err
		})
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

// watch prints answers that change.
type watch struct {
	Streams
	interval time.Duration
	now      func() time.Time
	after    func(time.Duration) <-chan time.Time
}

// run ends with the error of the first answer, or of the context. A later answer that fails is unknown: it differs from
// the answer before, but not from another unknown answer, whose error may differ in a port only.
func (w watch) run(ctx context.Context, ask func(context.Context, Streams) error) error {
	const unknown = "unknown: "
	before := ""
	for first := true; ; first = false {
		var out, errOut bytes.Buffer
		s := w.Streams
		s.Out, s.ErrOut, s.live = &out, &errOut, false
		err := ask(ctx, s)
		answer := errOut.String() + "\x00" + out.String()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && first:
			_, writeErr := w.ErrOut.Write(errOut.Bytes())
			return errors.Join(err, writeErr)
		case err != nil:
			answer = unknown
			out.Reset()
			fmt.Fprintln(&out, unknown+render.Printable(OneLine(err).Error()))
		}
		if answer != before {
			if !first {
				fmt.Fprintln(w.Out)
			}
			if _, err := fmt.Fprintf(w.Out, "%s\n%s", w.now().UTC().Format(time.RFC3339), out.Bytes()); err != nil {
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
