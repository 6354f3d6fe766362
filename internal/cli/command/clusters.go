package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// clustersAtOnce is how many clusters are asked at the same time. The state of each is in memory.
const clustersAtOnce = 4

// ofOneCluster are the connection flags that name one cluster, or a credential that no other cluster may see.
var ofOneCluster = []string{
	"server", "cluster", "tls-server-name", "certificate-authority", "user", "token", "username", "password", "client-certificate",
	"client-key",
}

// AddClusters lets a command whose RunE is set ask several clusters: --context takes a list, and --all-contexts stands for all.
// Not are flags of the command that are about one cluster.
func AddClusters(a *App, cmd *cobra.Command, c *Connection, not ...string) {
	all := cmd.Flags().Bool("all-contexts", false,
		"ask the cluster of each context of the kubeconfig, and print one table; --context=NAME,NAME asks some of them")
	Must(cmd.Flags().SetAnnotation("all-contexts", FlagHeading, []string{"Several clusters"}))
	c.names, c.several = append(c.names, "all-contexts"), true
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.Part.Context != "" {
			c.overrides.CurrentContext = a.Part.Context
			return once(cmd, args)
		}
		if cmd.Flags().Changed("from") {
			return once(cmd, args)
		}
		contexts, err := c.contexts(*all)
		if err != nil {
			return err
		}
		if len(contexts) == 0 {
			return once(cmd, args)
		}
		if err := checkAgain(cmd, "several contexts", slices.Concat(ofOneCluster, not)); err != nil {
			return err
		}
		return a.askClusters(cmd, contexts)
	}
}

// contexts returns the contexts of the flags, each once, if they are several; nil for one.
func (c *Connection) contexts(all bool) ([]string, error) {
	known, given := c.known("context"), c.overrides.CurrentContext
	switch {
	case all && given != "":
		return nil, Usagef("--all-contexts stands for all contexts: leave out --context")
	case !all && (!strings.Contains(given, ",") || slices.Contains(known, given)):
		return nil, nil
	case len(known) == 0:
		_, err := c.Config()
		return nil, cmp.Or(err, Usagef("there are no contexts: set KUBECONFIG or --kubeconfig"))
	case all:
		return known, nil
	}
	var contexts []string
	for name := range strings.SplitSeq(given, ",") {
		if name == "" {
			return nil, Usagef("--context %q: a name is missing beside a comma", given)
		}
		if err := c.unknown("context", name); err != nil {
			return nil, err
		}
		if !slices.Contains(contexts, name) {
			contexts = append(contexts, name)
		}
	}
	return contexts, nil
}

type clusterRun struct {
	*App
	err    error
	stderr bytes.Buffer
}

// askClusters runs the command line for each context, and writes one result. The exit status is the highest.
func (a *App) askClusters(cmd *cobra.Command, contexts []string) error {
	format := render.Format(cmd.Flag("output").Value.String())
	if slices.Contains([]render.Format{render.Dot, render.SARIF, render.JUnit, render.HTML}, format) {
		return Usagef("-o %s is about one cluster: ask for it with one --context after the other, or use -o json", format)
	}
	runs := a.runClusters(cmd.Context(), contexts)
	if err := cmp.Or(cmd.Context().Err(), sameUsage(runs)); err != nil {
		return err
	}
	quiet := cmd.Flag("quiet") != nil && cmd.Flag("quiet").Changed
	result := render.Clusters{}
	for i, run := range runs {
		if _, err := a.ErrOut.Write(run.stderr.Bytes()); err != nil {
			return err
		}
		answer := render.ClusterAnswer{Context: contexts[i], ExitStatus: run.Status}
		if run.err != nil {
			a.Failure("%s: %v", contexts[i], run.err)
			answer.ExitStatus, answer.Error = StatusUndecided, render.Printable(OneLine(run.err).Error())
			a.NoteNotRead([]Missing{{Reason: "context " + contexts[i] + ": " + answer.Error}})
		} else if !quiet {
			if err := answer.Add(run.Result, run.Metadata); err != nil {
				return err
			}
		}
		a.Status = max(a.Status, answer.ExitStatus)
		result.Clusters = append(result.Clusters, answer)
	}
	if quiet {
		return nil
	}
	return a.Write(result, format)
}

func (a *App) runClusters(ctx context.Context, contexts []string) []*clusterRun {
	runs, slots := make([]*clusterRun, len(contexts)), make(chan struct{}, clustersAtOnce)
	var all sync.WaitGroup
	for i, name := range contexts {
		run, s := &clusterRun{}, a.Streams
		s.Out, s.ErrOut, s.live, s.about = io.Discard, &run.stderr, false, render.Printable(name)+": "
		runs[i] = run
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			run.App = a.part(s, Part{Watched: a.Part.Watched, Context: name})
			run.err = a.Execute(ctx, run.App)
		})
	}
	all.Wait()
	return runs
}

// sameUsage returns the usage error that all runs have; nil if one has none, or another.
func sameUsage(runs []*clusterRun) error {
	first := runs[0].err
	if usage := new(UsageError); !errors.As(first, &usage) {
		return nil
	}
	for _, run := range runs {
		if run.err == nil || run.err.Error() != first.Error() {
			return nil
		}
	}
	return first
}

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
