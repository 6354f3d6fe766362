package paths

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

type diffFlags struct {
	to         []string
	techniques []string
	failOn     string
	known      command.KnownFlags
	state      *command.StateFlags
	// remedies is true for formats that have the remedies of steps.
	remedies bool
}

func NewDiff(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [--with FILE...] [--without KIND/NAME...] [--to FILE]",
		Short: "Show what nodes and service accounts come to reach through a change, and what no longer",
		Long: `Shows what nodes and service accounts reach, by attack paths, after a change
that they did not reach before, and what they no longer reach: first the whole cluster,
then nodes, secrets, service accounts and namespaces.

The first state is the state of --from, or of a cluster. The second is the first with
the objects of --with applied and the objects of --without deleted, or the state of
--to. --with reads what helm template and kustomize build print, also from a pipe.

Pods that no scheduler has bound count for each node that their selectors, affinity,
tolerations and requests allow: what such a node reaches through them is Possible.
Starts that change alike are one row, with the path that is new and the place in the
manifest of what makes it possible.

New and changed workloads come first: what somebody reaches who breaks into one of their
pods, such as the node, secrets, and what the service account may do. No findings are: a
new secret, service account, namespace or node that is reached by who reached all of its
kind before, what accounts of the control plane or with rights to label nodes come to
reach, but for certain cluster-admin, the account and new secrets that a workload itself
names, and what only such a workload brings to a node, unless it gives a right or
something else that is new. -o wide lists them.

--baseline names a file with findings that do not count, as for doctor: findings that
--write-baseline wrote, and suppressions with reasons. Code is the technique of the last
step, object the start, and subject what is reached, as the output names them.

Exit status: 0 nothing that --fail-on names widens, 1 something does, 2 could not
decide. A path that was only possible and becomes certain widens too. If something could
not be read, or is in neither the state nor the manifests, what does not widen is not
decided.`,
		Example: `  # What would this chart open?
  helm template shop ./chart | node-authorizer diff --from cluster.snapshot --with - -n shop

  # And a comment for the pull request
  kustomize build overlays/prod | node-authorizer diff --from cluster.snapshot --with - -o markdown

  # What closes without this binding?
  node-authorizer diff --without clusterrolebinding/ci-admin

  # What changed since last week?
  node-authorizer diff --from last-week.snapshot --to today.snapshot`,
	}
	f := &diffFlags{state: command.AddState(a, cmd)}
	f.state.Inventory, f.state.Templates = true, true
	f.state.AddBehaviour(cmd)
	f.state.AddChanges(cmd)
	f.state.AddNamespace(cmd, "namespace of objects that name none, and of --without (default: the kubeconfig's, else \"default\")")
	cmd.Flags().StringArrayVar(&f.to, "to", nil, "compare with the state of a file or folder of manifests, or a snapshot; can be repeated")
	command.Must(cmd.MarkFlagFilename("to"))
	cmd.Flags().StringArrayVar(&f.techniques, "techniques", nil,
		"file with techniques to add, for rights on the resources of operators; can be repeated")
	command.Must(cmd.MarkFlagFilename("techniques", "yaml", "yml", "json"))
	cmd.Flags().StringVar(&f.failOn, "fail-on", failOnPossible,
		"exit with 1 if a finding is: possible (any), certain, about cluster-admin, or about a node or cluster-admin (node)")
	command.Must(cmd.RegisterFlagCompletionFunc("fail-on", command.Complete(DiffFailOns)))
	f.known.Add(cmd)
	output := command.AddFormat(cmd, render.ForRows(render.SARIF, render.JUnit, render.Markdown, render.HTML)...)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if err := f.check(); err != nil {
			return err
		}
		f.remedies = showsRemedies(format)
		result, err := f.run(cmd)
		if err != nil {
			return err
		}
		a.Status = result.status()
		return errors.Join(a.Write(result, format), f.known.Refused(result.report))
	})
	return cmd
}

func (f *diffFlags) check() error {
	switch {
	case !slices.Contains(DiffFailOns(), f.failOn):
		return command.Usagef(
			"--fail-on %q: want possible, certain, cluster-admin or node%s", f.failOn, command.DidYouMean(f.failOn, DiffFailOns()),
		)
	case f.known.AllowUndetermined && f.known.Write == "":
		return command.Usagef("--allow-undetermined has no effect without --write-baseline: remove it")
	case len(f.to) == 0 && !f.state.Changes.Given():
		return command.Usagef("nothing to compare with: add --with, --without or --to")
	case len(f.to) > 0 && f.state.Changes.Given():
		return command.Usagef("--to is a whole state, which --with and --without do not change: leave them out")
	case slices.Contains(f.to, "-") && slices.Contains(f.state.From, "-"):
		return command.Usagef("standard input (-) is given twice, but can be read only once")
	}
	return nil
}

// sides are the two states with their graphs.
type sides struct {
	before, after command.StateInfo
	graphs        [2]*attackpaths.Graph
	changes       diffChanges
	missing       []command.Missing
	notes         []string
	custom        []attackpaths.CustomTechnique
	differs       func(attackpaths.Holding) bool
}

func (f *diffFlags) run(cmd *cobra.Command) (*DiffResult, error) {
	custom, err := readTechniques(f.state.App, f.techniques)
	if err == nil {
		err = f.known.Read()
	}
	if err != nil {
		return nil, err
	}
	paths := &AttackPathsFlags{custom: custom}
	s, err := f.load(cmd, paths)
	if err != nil {
		return nil, err
	}
	s.custom = custom
	f.state.App.WarnMissing(s.missing, command.MorePaths)
	compared := attackpaths.Compare(s.graphs[0], s.graphs[1], attackpaths.CompareOptions{Changed: s.differs})
	if f.remedies {
		var paths [][]attackpaths.Step
		for _, d := range slices.Concat(compared.Widened, compared.Expected) {
			paths = append(paths, d.Path)
		}
		s.graphs[1].AddRemedies(paths...)
	}
	r := newDiffResult(s, compared)
	if err := r.withoutKnown(f.state.App, &f.known); err != nil {
		return nil, err
	}
	r.settle(compared.Starts, f.failOn)
	return r, nil
}

// load reads the first state, makes its graph, and then the second one's. A change is applied to the
// first state itself, so that there is only one in memory.
func (f *diffFlags) load(cmd *cobra.Command, paths *AttackPathsFlags) (*sides, error) {
	if err := f.state.Check(cmd); err != nil {
		return nil, err
	}
	state, err := f.state.ReadState(cmd.Context())
	if err != nil {
		return nil, err
	}
	f.state.App.WarnState(state)
	s := &sides{}
	session, err := s.add(cmd.Context(), f.state, state, paths, 0)
	if err != nil {
		return nil, err
	}
	s.before = session.Info()
	if len(f.to) > 0 {
		return s, f.loadOther(cmd.Context(), s, session, paths)
	}
	applied, notes, err := f.state.Change(cmd.Context(), state)
	if err != nil {
		return nil, err
	}
	if session, err = s.add(cmd.Context(), f.state, state, paths, 1); err != nil {
		return nil, err
	}
	s.after, s.notes = session.Info(), notes
	s.missing = MissingForPaths(session, session.KnownNodes()...)
	s.changes = diffChanges{applied: applied, index: map[verdict.Object]int{}}
	for i, a := range applied {
		s.changes.index[verdict.Object{Kind: a.Kind, Namespace: a.Namespace, Name: a.Name}] = i
	}
	s.differs = func(h attackpaths.Holding) bool { return s.changes.of(h) != nil }
	return s, nil
}

func (s *sides) add(
	ctx context.Context, f *command.StateFlags, state *source.State, paths *AttackPathsFlags, at int,
) (*command.Session, error) {
	session, err := f.NewSession(ctx, state, nil)
	if err != nil {
		return nil, err
	}
	s.graphs[at], err = AttackGraph(session, paths)
	return session, err
}

func (f *diffFlags) loadOther(ctx context.Context, s *sides, before *command.Session, paths *AttackPathsFlags) error {
	other := *f.state
	other.From, other.Places = f.to, true
	state, err := other.ReadState(ctx)
	if err != nil {
		return err
	}
	f.state.App.WarnState(state)
	session, err := s.add(ctx, &other, state, paths, 1)
	if err != nil {
		return err
	}
	s.after = session.Info()
	s.missing = MissingForPaths(session, session.KnownNodes()...)
	for _, m := range MissingForPaths(before, before.KnownNodes()...) {
		if !slices.Contains(s.missing, m) {
			s.missing = append(s.missing, m)
		}
	}
	s.changes = diffChanges{state: state}
	s.differs = newDifference(before.State, state).has
	return nil
}
