package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

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
