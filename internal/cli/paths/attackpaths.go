// Package paths has the commands about attack paths: attack-paths and diff.
package paths

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// AttackPathsFlags are the command's own flags.
type AttackPathsFlags struct {
	to                    string
	groups                []string
	allNodes, allAccounts bool
	certainOnly, strict   bool
	whatToChange, fix     bool
	maxPaths              int
	starts                []attackpaths.Holding
	target                *attackpaths.Holding
	techniques            []string
	// compareWith is the file of an earlier document, and earlier the document.
	compareWith string
	earlier     *earlierPaths
	custom      []attackpaths.CustomTechnique
	state       *command.StateFlags
}

func NewAttackPaths(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attack-paths {START... | --all-nodes | --all-serviceaccounts}",
		Short: "Show what the holder of a node or of a credential can come to own, step by step",
		Long: `Shows what the holder of a node, a pod, a service account or a user can come to
own: other nodes, service accounts, secrets, and the whole cluster. Each has the
shortest path that leads to it, and each step names what makes it possible.

START is node/NAME, pod/NAMESPACE/NAME, serviceaccount/NAMESPACE/NAME or user/NAME (with
--group). Without NAMESPACE, the namespace of a pod or service account is the one of -n.
A node is root on the machine: its credential, and everything in its pods.

A step is Certain if Kubernetes' own authorization and admission allow it. A step is
Possible if it also depends on something that objects do not show, such as a webhook;
the step names it. Holdings that only cluster-admin gives are not listed.

node-authorizer explain-code describes each technique. --techniques adds techniques from
a file, for operators: who may write an Application of Argo CD has the rights of its
controller. Files for some operators are in examples/techniques.

docs/reference/rights.md says what each right gives. Rights that are reached and
may give more than paths follow are counted; -o wide lists them.

Exit status: 0 the target is not reached, 1 it is, 2 could not decide, or START, the
target or anything to start from does not exist. The target is cluster-admin unless --to
names another. Whoever owns the cluster owns the target. With --compare-with: 0 nothing is
new, 1 something is, 2 not known, also where UIDs do not show that it is the same
cluster. With --strict, rights that are not followed leave the answer undecided.`,
		Example: `  # What is lost with this node?
  node-authorizer attack-paths node/web-1

  # Which nodes give the whole cluster?
  node-authorizer attack-paths --all-nodes

  # As a page for a browser
  node-authorizer attack-paths --all-nodes --what-to-change -o html > paths.html

  # Which change helps most nodes?
  node-authorizer attack-paths --all-nodes --what-to-change

  # Which commands make these changes?
  node-authorizer attack-paths --all-nodes --what-to-change --fix

  # How does this service account get to a secret?
  node-authorizer attack-paths serviceaccount/build/ci --to secret/shop/db

  # Which nodes lead to it?
  node-authorizer attack-paths --all-nodes --to secret/shop/db

  # What is new since the last report?
  node-authorizer attack-paths --all-nodes -o json > last.json
  node-authorizer attack-paths --all-nodes --compare-with last.json

  # Who owns the cluster through Argo CD?
  node-authorizer attack-paths --all-serviceaccounts --techniques examples/techniques/argo-cd.yaml`,
		Args: cobra.ArbitraryArgs,
	}
	f := &AttackPathsFlags{state: command.AddState(a, cmd)}
	f.state.Inventory = true
	cmd.ValidArgsFunction = f.state.CompleteHolding(true, "user/")
	f.state.AddBehaviour(cmd)
	f.state.AddChanges(cmd)
	f.state.AddNamespace(cmd, "namespace of pods and service accounts (default: the kubeconfig's, else \"default\")")
	cmd.Flags().StringVar(&f.to, "to", "",
		"show the path to one target: cluster-admin, node/NAME, secret/NAMESPACE/NAME, serviceaccount/NAMESPACE/NAME")
	command.Must(cmd.RegisterFlagCompletionFunc("to", f.state.CompleteHolding(false, "cluster-admin", "user/", "group/")))
	cmd.Flags().StringArrayVar(&f.groups, "group", nil, "a group of the user that the path starts from; can be repeated")
	command.Must(cmd.RegisterFlagCompletionFunc("group", f.state.GroupNames))
	cmd.Flags().BoolVar(&f.allNodes, "all-nodes", false, "start from each node; nodes that reach the same are one row")
	cmd.Flags().BoolVar(&f.allAccounts, "all-serviceaccounts", false, "start from each service account")
	cmd.Flags().BoolVar(&f.whatToChange, "what-to-change", false,
		"with --all-nodes, also say which bindings, rules, mounts and Pod Security labels to change, and how many nodes that helps")
	cmd.Flags().BoolVar(&f.fix, "fix", false,
		"print a script that ends each path to the target (default: cluster-admin) by one change, with the other changes as comments; "+
			"with --what-to-change, the changes that help together")
	cmd.Flags().BoolVar(&f.certainOnly, "certain-only", false, "leave out what is only possible, and say how much that is")
	cmd.Flags().BoolVar(&f.strict, "strict", false,
		"exit with status 2 instead of 0 if rights are reached that may give more than paths follow")
	cmd.Flags().StringArrayVar(&f.techniques, "techniques", nil,
		"file with techniques to add, for rights on the resources of operators; can be repeated")
	command.Must(cmd.MarkFlagFilename("techniques", "yaml", "yml", "json"))
	cmd.Flags().StringVar(&f.compareWith, "compare-with", "",
		"print what is reached now and was not, and the reverse, since an earlier document of this command (-o json)")
	command.Must(cmd.MarkFlagFilename("compare-with", "json"))
	cmd.Flags().IntVar(&f.maxPaths, "max-paths", 20, "show so many paths in the table; 0 shows all")
	command.CompleteNothing(cmd, "max-paths")
	output := command.AddFormat(cmd, render.ForRows(render.Dot, render.SARIF, render.HTML)...)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if err := f.parse(args); err != nil {
			return err
		}
		if f.fix && format != render.Table {
			return command.Usagef("--fix prints a script: leave out -o %s", format)
		}
		a.NoteOptions(f.options(cmd))
		if err := f.readEarlier(format); err != nil {
			return err
		}
		s, err := f.state.Load(cmd)
		if err != nil {
			return err
		}
		return attackPaths(a, s, f, format)
	})
	command.AddClusters(a, cmd, f.state.Connection, "fix", "compare-with", "what-to-change")
	command.AddWatch(a, cmd)
	return cmd
}

func (f *AttackPathsFlags) parse(args []string) error {
	if len(args) == 0 && !f.allNodes && !f.allAccounts {
		return command.Usagef("START is missing: name one, such as node/NAME, or use --all-nodes")
	}
	if len(args) > 0 && (f.allNodes || f.allAccounts) {
		return command.Usagef("--all-nodes and --all-serviceaccounts replace START: leave out %s", strings.Join(args, " "))
	}
	if f.allNodes && f.allAccounts {
		return command.Usagef("--all-nodes and --all-serviceaccounts cannot be given together")
	}
	if f.whatToChange && !f.allNodes {
		return command.Usagef("--what-to-change is about all nodes: add --all-nodes")
	}
	for _, arg := range args {
		h, err := command.ParseHolding(arg, f.state.DefaultNamespace())
		if err != nil {
			return err
		}
		switch h.Kind {
		case attackpaths.Node, attackpaths.Pod, attackpaths.ServiceAccount, attackpaths.User:
			if !slices.Contains(f.starts, h) {
				f.starts = append(f.starts, h)
			}
		default:
			return command.Usagef("a path cannot start from %s: START is node/NAME, pod/NAME, serviceaccount/NAME or user/NAME", arg)
		}
	}
	if len(f.groups) > 0 && !slices.ContainsFunc(f.starts, func(h attackpaths.Holding) bool { return h.Kind == attackpaths.User }) {
		return command.Usagef("--group is about a user: add user/NAME")
	}
	err := command.CheckGroups("--group", f.groups)
	if err != nil {
		return err
	}
	if err = f.parseTarget(); err != nil {
		return err
	}
	f.custom, err = readTechniques(f.state.App, f.techniques)
	return err
}

func attackPaths(a *command.App, s *command.Session, f *AttackPathsFlags, format render.Format) error {
	g, err := AttackGraph(s, f)
	if err != nil {
		return err
	}
	noteGaps(a, g.Gaps())
	for _, line := range g.Notes() {
		a.PrintLine("note: ", line)
	}
	if f.target != nil && f.target.Kind != attackpaths.ClusterAdmin { // that it is not reached would mislead if it does not exist
		if err := requireHolding(s, g, *f.target); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if f.allNodes {
		return attackPathsOfNodes(a, s, g, f, format)
	}
	for _, start := range f.starts {
		if err := requireStart(s, g, start); err != nil {
			return err
		}
	}
	starts := f.starts
	if f.allAccounts {
		if starts, err = accountStarts(s, f.target); err != nil {
			return err
		}
	}
	warned := map[command.Missing]bool{}
	all := AttackPathsResults{Results: []AttackPathsResult{}, State: s.Info(), custom: f.custom, certainOnly: f.certainOnly}
	for _, start := range starts {
		var reached attackpaths.Result
		if f.target != nil {
			reached, err = g.FromTo(start, *f.target)
		} else {
			reached, err = g.From(start)
		}
		if err != nil {
			return err
		}
		result := AttackPathsResult{
			Result: reached, State: s.Info(), maxPaths: f.maxPaths, custom: f.custom,
			certainOnly: f.certainOnly, strict: f.strict,
		}
		if f.certainOnly {
			result.dropPossible()
		}
		result.Missing = MissingForPaths(s, NodesOf(result.Result)...)
		a.WarnMissing(slices.DeleteFunc(slices.Clone(result.Missing), func(m command.Missing) bool { return warned[m] }), command.MorePaths)
		for _, m := range result.Missing {
			warned[m] = true
		}
		a.Status = max(a.Status, result.status())
		all.Results = append(all.Results, result)
	}
	if f.fix {
		script := all.fix(g)
		g.AddRemedies(script.steps()...)
		return a.Write(script, format)
	}
	if showsRemedies(format) {
		var paths [][]attackpaths.Step
		for _, result := range all.Results {
			paths = append(paths, pathsOf(result.Reached)...)
		}
		g.AddRemedies(paths...)
	}
	if len(f.starts) == 1 {
		return f.write(a, all.Results[0], format)
	}
	return f.write(a, all, format)
}

// write writes a result, or how it differs from an earlier one.
func (f *AttackPathsFlags) write(a *command.App, result render.Document, format render.Format) error {
	if f.earlier == nil {
		return a.Write(result, format)
	}
	t, err := f.compare(a, result)
	if err != nil {
		return err
	}
	a.Status = t.status()
	return a.Write(t, format)
}

// MissingForPaths is the state that could not be read, or that files lack, and that could lengthen paths through nodes.
// NodeScopes and Quarantines only take rights away, and APIServices are about these; quotas and runtime classes only
// make paths less certain.
func MissingForPaths(s *command.Session, nodes ...string) []command.Missing {
	unread := s.MissingOf(func(m source.Missing) bool { return m.Kind&(source.ContainmentKinds()|source.RestrainingKinds()) == 0 })
	return append(unread, s.AsMissing(s.LackingForPaths(nodes...))...)
}

// NodesOf are the nodes that a result has, the start included.
func NodesOf(r attackpaths.Result) []string {
	var nodes []string
	if r.Start.Kind == attackpaths.Node {
		nodes = append(nodes, r.Start.Name)
	}
	for _, x := range r.Reached {
		if x.Kind == attackpaths.Node {
			nodes = append(nodes, x.Name)
		}
	}
	return nodes
}

func attackPathsOfNodes(a *command.App, s *command.Session, g *attackpaths.Graph, f *AttackPathsFlags, format render.Format) error {
	classes, err := f.classes(s, g)
	if err != nil {
		return err
	}
	missing := MissingForPaths(s, s.KnownNodes()...)
	a.WarnMissing(missing, command.MorePaths)
	result := AttackPathsClasses{
		Classes: classes, Target: f.target, Missing: missing, State: s.Info(), custom: f.custom, certainOnly: f.certainOnly,
	}
	if f.whatToChange {
		options := attackpaths.AdviceOptions{Possible: !f.certainOnly}
		if f.target != nil {
			options.Target = *f.target
		}
		if result.WhatToChange, err = attackpaths.WhatToChange(attackCluster(s, f), options); err != nil {
			return err
		}
	}
	for i := range result.Classes {
		c := &result.Classes[i]
		result.Nodes += len(c.Nodes)
		if f.certainOnly && classCertainty(*c) == attackpaths.Possible {
			result.LeftOut += len(c.Nodes)
		}
		if f.certainOnly {
			dropPossible(c)
		}
		if classCertainty(*c) != attackpaths.No {
			a.Status = command.StatusDenied
		}
	}
	if a.Status == command.StatusAllowed && (len(missing) > 0 || f.strict && len(result.notFollowed()) > 0) {
		a.Status = command.StatusUndecided
	}
	if f.fix {
		script := result.fix(g)
		g.AddRemedies(script.steps()...)
		return a.Write(script, format)
	}
	var paths [][]attackpaths.Step
	for _, c := range result.Classes {
		paths = append(paths, c.Path)
	}
	if format == render.HTML && !result.ofOther() {
		holdings := len(s.State.Inventory.ServiceAccounts()) + len(s.State.Inventory.Secrets())
		result.certainCells = result.Nodes*holdings > maxOverview
		options := attackpaths.OverviewOptions{CertainCells: f.certainOnly || result.certainCells}
		result.overview = g.Overview(result.Classes, options)
		for _, row := range result.overview.Rows {
			paths = append(paths, row.Path)
		}
		for _, c := range result.overview.Cells {
			paths = append(paths, pathsOf(c.Listed)...)
		}
	}
	if showsRemedies(format) {
		g.AddRemedies(paths...)
	}
	return f.write(a, result, format)
}
