package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// attackPathsResult has the paths from one start.
type attackPathsResult struct {
	attackpaths.Result
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []missing `json:"missing,omitempty"`
	// State is the cluster state that was searched.
	State stateInfo `json:"state"`
	// LeftOut is how many holdings are possible, and left out because only what is certain was asked for.
	LeftOut int `json:"leftOut,omitempty"`

	maxPaths int
	// nodes is how many nodes a class has of which this is one.
	nodes int
	// custom are the techniques that the user adds.
	custom      []attackpaths.CustomTechnique
	certainOnly bool
	strict      bool
}

// attackPathsResults are the results of several starts.
type attackPathsResults struct {
	// Results are in the order of the starts.
	Results []attackPathsResult `json:"results"`
	// State is the cluster state that was searched.
	State stateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
}

// attackPathsClasses are the nodes grouped by the objects that they reach.
type attackPathsClasses struct {
	// Classes are nodes that reach the same; each node is in one.
	Classes []attackpaths.Class `json:"classes"`
	// Nodes is how many nodes there are, without the target.
	Nodes int `json:"nodes"`
	// Target is what --to names: the paths of the classes lead to it, or to cluster-admin, which owns it.
	Target *attackpaths.Holding `json:"target,omitempty"`
	// LeftOut is how many nodes possibly reach the target, which is left out because only what is certain
	// was asked for.
	LeftOut int `json:"leftOut,omitempty"`
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []missing `json:"missing,omitempty"`
	// WhatToChange is set if it was asked for.
	WhatToChange *attackpaths.Advice `json:"whatToChange,omitempty"`
	// State is the cluster state that was searched.
	State stateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
	// certainCells is true if the overview leaves out what is only possible.
	certainCells bool
	// overview counts the objects that the classes reach in each namespace; only a page shows it.
	overview *attackpaths.Overview
}

// maxOverview is for how many nodes times service accounts and secrets an overview lists what is only
// possible: often every node may get every pod.
const maxOverview = 50_000_000

// attackPathsFlags are the command's own flags.
type attackPathsFlags struct {
	to                    string
	groups                []string
	allNodes, allAccounts bool
	certainOnly, strict   bool
	whatToChange, fix     bool
	maxPaths              int
	starts                []attackpaths.Holding
	target                *attackpaths.Holding
	techniques            []string
	custom                []attackpaths.CustomTechnique
	state                 *stateFlags
}

func newAttackPaths(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attack-paths {START... | --all-nodes | --all-serviceaccounts}",
		Short: "Show what the holder of a node or of a credential can come to own, step by step",
		Long: `Shows what the holder of a node, a pod, a service account or a user can come to own:
other nodes, service accounts, secrets, and the whole cluster. Each has the shortest path that
leads to it, and each step names what makes it possible.

START is node/NAME, pod/NAMESPACE/NAME, serviceaccount/NAMESPACE/NAME or user/NAME (with --group).
Without NAMESPACE, the namespace of a pod or service account is the one of -n.
A node is root on the machine: its credential, and everything in its pods.

A step is Certain if Kubernetes' own authorization and admission allow it. It is Possible if
something decides that objects do not show, such as a webhook; the step says what. What is
reached through cluster-admin alone is not listed.

The techniques are described in docs/techniques.md. --techniques adds techniques from a file, for
operators: who may write an Application of Argo CD has the rights of its controller.
Files for some operators are in examples/techniques.

What each right gives is in docs/rights.md. Rights that are reached and may give more than
paths follow are counted, and listed with -o wide.

Exit status: 0 the target is not reached, 1 it is, 2 could not decide, or START, the target or
anything to start from does not exist. The target is cluster-admin unless --to names another.
What owns the cluster owns the target. With --strict, rights that are not followed leave the
answer undecided.`,
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

  # Who owns the cluster through Argo CD?
  node-authorizer attack-paths --all-serviceaccounts --techniques examples/techniques/argo-cd.yaml`,
	}
	f := &attackPathsFlags{state: addState(a, cmd)}
	f.state.inventory = true
	cmd.ValidArgsFunction = f.state.completeHolding(true, "user/")
	f.state.addBehaviour(cmd)
	f.state.addChanges(cmd)
	f.state.addNamespace(cmd, "namespace of pods and service accounts (default: the kubeconfig's, else \"default\")")
	cmd.Flags().StringVar(&f.to, "to", "",
		"show the path to one target: cluster-admin, node/NAME, secret/NAMESPACE/NAME, serviceaccount/NAMESPACE/NAME")
	must(cmd.RegisterFlagCompletionFunc("to", f.state.completeHolding(false, "cluster-admin", "user/", "group/")))
	cmd.Flags().StringSliceVar(&f.groups, "group", nil, "a group of the user that the path starts from; can be repeated")
	must(cmd.RegisterFlagCompletionFunc("group", f.state.groupNames))
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
	must(cmd.MarkFlagFilename("techniques", "yaml", "yml", "json"))
	cmd.Flags().IntVar(&f.maxPaths, "max-paths", 20, "show so many paths in the table; 0 shows all")
	completeNothing(cmd, "max-paths")
	output := addFormat(cmd, render.Table, render.Wide, render.JSON, render.YAML, render.Dot, render.SARIF, render.HTML)
	output.runE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if err := f.parse(args); err != nil {
			return err
		}
		if f.fix && format != render.Table {
			return usagef("--fix prints a script: leave out -o %s", format)
		}
		s, err := f.state.load(cmd)
		if err != nil {
			return err
		}
		return a.attackPaths(s, f, format)
	})
	return cmd
}

// parse reads the starts and the target.
func (f *attackPathsFlags) parse(args []string) error {
	if len(args) == 0 && !f.allNodes && !f.allAccounts {
		return usagef("START is missing: name one, such as node/NAME, or use --all-nodes")
	}
	if len(args) > 0 && (f.allNodes || f.allAccounts) {
		return usagef("--all-nodes and --all-serviceaccounts replace START: leave out %s", strings.Join(args, " "))
	}
	if f.allNodes && f.allAccounts {
		return usagef("--all-nodes and --all-serviceaccounts cannot be given together")
	}
	if f.whatToChange && !f.allNodes {
		return usagef("--what-to-change is about all nodes: add --all-nodes")
	}
	for _, arg := range args {
		h, err := parseHolding(arg, f.state.defaultNamespace())
		if err != nil {
			return err
		}
		switch h.Kind {
		case attackpaths.Node, attackpaths.Pod, attackpaths.ServiceAccount, attackpaths.User:
			f.starts = append(f.starts, h)
		default:
			return usagef("a path cannot start from %s: START is node/NAME, pod/NAME, serviceaccount/NAME or user/NAME", arg)
		}
	}
	if len(f.groups) > 0 && !slices.ContainsFunc(f.starts, func(h attackpaths.Holding) bool { return h.Kind == attackpaths.User }) {
		return usagef("--group is about a user: add user/NAME")
	}
	if err := f.parseTarget(); err != nil {
		return err
	}
	var err error
	f.custom, err = f.state.app.readTechniques(f.techniques)
	return err
}

// attackPaths answers and writes.
func (a *app) attackPaths(s *session, f *attackPathsFlags, format render.Format) error {
	g, err := s.attackGraph(f)
	if err != nil {
		return err
	}
	a.noteGaps(g.Gaps())
	for _, line := range g.Notes() {
		a.printLine("note: ", line)
	}
	if err := s.requireTarget(g, f.target); err != nil {
		return err
	}
	if f.allNodes {
		return a.attackPathsOfNodes(s, g, f, format)
	}
	starts := f.starts
	if f.allAccounts {
		if starts, err = s.accountStarts(f.target); err != nil {
			return err
		}
	}
	warned := map[missing]bool{}
	all := attackPathsResults{Results: []attackPathsResult{}, State: s.info(), custom: f.custom, certainOnly: f.certainOnly}
	for _, start := range starts {
		reached, err := f.search(g, start)
		if err != nil {
			return fmt.Errorf("%w: check the name and the namespace (-n)", err)
		}
		result := attackPathsResult{
			Result: reached, State: s.info(), maxPaths: f.maxPaths, custom: f.custom,
			certainOnly: f.certainOnly, strict: f.strict,
		}
		if f.certainOnly {
			result.dropPossible()
		}
		result.Missing = s.missingForPaths(nodesOf(result.Result)...)
		a.warnMissing(slices.DeleteFunc(slices.Clone(result.Missing), func(m missing) bool { return warned[m] }), morePaths)
		for _, m := range result.Missing {
			warned[m] = true
		}
		a.status = max(a.status, result.status())
		all.Results = append(all.Results, result)
	}
	if f.fix {
		script := all.fix(g)
		g.AddRemedies(script.steps()...)
		return a.write(script, format)
	}
	if showsRemedies(format) {
		var paths [][]attackpaths.Step
		for _, result := range all.Results {
			paths = append(paths, pathsOf(result.Reached)...)
		}
		g.AddRemedies(paths...)
	}
	if len(f.starts) == 1 {
		return a.write(all.Results[0], format)
	}
	return a.write(all, format)
}

// missingForPaths is the state that could not be read, or that files lack, and that could lengthen paths through nodes.
// NodeScopes and Quarantines only take rights away, and APIServices are about these; quotas and runtime classes only
// make paths less certain.
func (s *session) missingForPaths(nodes ...string) []missing {
	var unread []missing
	for _, m := range s.State.Missing() {
		if m.Kind&(source.ContainmentKinds()|source.RestrainingKinds()) == 0 {
			unread = append(unread, newMissing(m))
		}
	}
	return append(unread, s.asMissing(s.LackingForPaths(nodes...))...)
}

// nodesOf are the nodes that a result has, the start included.
func nodesOf(r attackpaths.Result) []string {
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

func (a *app) attackPathsOfNodes(s *session, g *attackpaths.Graph, f *attackPathsFlags, format render.Format) error {
	classes, err := f.classes(s, g)
	if err != nil {
		return err
	}
	missing := s.missingForPaths(s.knownNodes()...)
	a.warnMissing(missing, morePaths)
	result := attackPathsClasses{
		Classes: classes, Target: f.target, Missing: missing, State: s.info(), custom: f.custom, certainOnly: f.certainOnly,
	}
	if f.whatToChange {
		options := attackpaths.AdviceOptions{Possible: !f.certainOnly}
		if f.target != nil {
			options.Target = *f.target
		}
		if result.WhatToChange, err = attackpaths.WhatToChange(s.attackCluster(f), options); err != nil {
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
			a.status = statusDenied
		}
	}
	if a.status == statusAllowed && (len(missing) > 0 || f.strict && len(result.notFollowed()) > 0) {
		a.status = statusUndecided
	}
	if f.fix {
		script := result.fix(g)
		g.AddRemedies(script.steps()...)
		return a.write(script, format)
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
	return a.write(result, format)
}

func (r *attackPathsResult) status() int {
	switch {
	case r.certainty() != attackpaths.No:
		return statusDenied
	case len(r.Missing) > 0, r.strict && len(r.NotFollowed) > 0:
		return statusUndecided
	}
	return statusAllowed
}

func (attackPathsResult) DocumentKind() string { return "AttackPaths" }

func (attackPathsResults) DocumentKind() string { return "AttackPathsList" }

func (attackPathsClasses) DocumentKind() string { return "AttackPathsOfNodes" }
