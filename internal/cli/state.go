package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// stateFlags define where a cluster's state comes from and how the cluster behaves.
type stateFlags struct {
	app        *app
	from       []string
	connection *connection
	namespace  string
	version    string
	gates      string
	// authorization is the path of an AuthorizationConfiguration.
	authorization string
	// retain keeps the objects that a snapshot needs.
	retain bool
	// inventory reads what attack paths need.
	inventory bool
	// parts reads of a cluster only what the answer depends on, unless the state is changed.
	parts bool
	// partsOfFiles does so of a snapshot only.
	partsOfFiles bool
	// partsAbove does so of a snapshot with more pods than that.
	partsAbove int
	// places notes where objects are in files.
	places bool
	// templates adds the pods that workloads in files make.
	templates bool
	changes   changeFlags
}

// addState adds the flags of every command that uses a cluster's state.
func addState(a *app, cmd *cobra.Command) *stateFlags {
	f := &stateFlags{app: a}
	cmd.Flags().StringArrayVar(&f.from, "from", nil,
		"read the state from a file or folder of manifests, a snapshot, or - for stdin, instead of a cluster; can be repeated")
	must(cmd.MarkFlagFilename("from"))
	f.connection = addConnection(cmd)
	f.connection.otherwise = ", or answer from files with --from"
	return f
}

// addBehaviour adds the flags about the version of Kubernetes.
func (f *stateFlags) addBehaviour(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.version, "kubernetes-version", "",
		fmt.Sprintf(
			"decide as Kubernetes %s … %s does (default: the server's version, else %s)", kubeversion.Oldest, kubeversion.Latest,
			kubeversion.Latest,
		))
	cmd.Flags().StringVar(&f.gates, "feature-gates", "", "set feature gates that matter to node authorization: NAME=true,NAME=false")
	must(cmd.RegisterFlagCompletionFunc("kubernetes-version", complete(func() []string {
		var versions []string
		for _, m := range kubeversion.Minors() {
			versions = append(versions, m.String())
		}
		return versions
	})))
	must(cmd.RegisterFlagCompletionFunc("feature-gates", complete(func() []string {
		var gates []string
		for _, g := range kubeversion.Gates() {
			gates = append(gates, string(g)+"=")
		}
		return gates
	})))
}

// addAuthorization adds the flag that replaces the chain of authorizers.
func (f *stateFlags) addAuthorization(cmd *cobra.Command, usual string) {
	cmd.Flags().StringVar(&f.authorization, "authorization-config", "",
		"ask the authorizers of this AuthorizationConfiguration, the file that kube-apiserver reads, webhooks included "+
			"(default: "+usual+")")
	must(cmd.MarkFlagFilename("authorization-config"))
}

// addNamespace adds -n with the usage of the command.
func (f *stateFlags) addNamespace(cmd *cobra.Command, usage string) {
	cmd.Flags().VarP(&namespaceValue{&f.namespace}, "namespace", "n", usage)
	must(cmd.RegisterFlagCompletionFunc("namespace", f.namespaceNames))
}

// session is a loaded state with its evaluator.
type session struct {
	*evaluate.Evaluator
	// configured is the path of the AuthorizationConfiguration; empty for the default
	// authorizers.
	configured string
	names      *resources.Mapper
	// namespace is the given namespace, or else the kubeconfig's, or else "default".
	namespace string
	// ofFiles is true if the state is of files, not of a cluster.
	ofFiles bool
}

// load reads the state and writes warnings about it to stderr.
func (f *stateFlags) load(cmd *cobra.Command) (*session, error) {
	if err := f.check(cmd); err != nil {
		return nil, err
	}
	configuration, err := f.configuration()
	if err != nil {
		return nil, err
	}
	f.inventory = f.inventory || f.changes.given()
	state, err := f.readState(cmd.Context())
	if err != nil {
		return nil, err
	}
	f.app.warnState(state)
	applied, notes, err := f.change(cmd.Context(), state)
	if err != nil {
		return nil, err
	}
	f.app.noteChanges(applied, notes)
	return f.newSession(cmd.Context(), state, configuration)
}

// warnState writes warnings about what was read.
func (a *app) warnState(state *source.State) {
	for _, line := range state.Warnings() {
		a.warn("%s", line)
	}
	if line := leftOut(state); line != "" {
		a.warn("%s", line)
	}
}

// newSession makes the evaluator of a state.
func (f *stateFlags) newSession(ctx context.Context, state *source.State, configuration *chain.Configuration) (*session, error) {
	features, err := f.features(state)
	if err != nil {
		return nil, err
	}
	evaluator, err := evaluate.New(ctx, state, evaluate.Options{Features: features, Authorizers: configuration})
	if err != nil {
		return nil, fmt.Errorf("building the configured authorizers: %w", err)
	}
	if err := state.ReadErr(); err != nil {
		return nil, err
	}
	for _, line := range evaluator.Warnings() {
		f.app.warn("%s", line)
	}
	return &session{
		Evaluator: evaluator, configured: f.authorization, names: newNames(state),
		namespace: f.defaultNamespace(), ofFiles: len(f.from) > 0,
	}, nil
}

func newNames(state *source.State) *resources.Mapper {
	if state.Resources == nil {
		return resources.Offline()
	}
	all := make([]resources.Resource, len(state.Resources))
	for i, r := range state.Resources {
		all[i] = resources.Resource(r)
	}
	return resources.Discovered(all)
}

// check validates the flags before anything is read.
func (f *stateFlags) check(cmd *cobra.Command) error {
	if f.version != "" {
		if _, err := kubeversion.Parse(f.version); err != nil {
			return usagef("--kubernetes-version: %w", err)
		}
	}
	if err := f.changes.check(f.from); err != nil || len(f.from) == 0 {
		return err
	}
	if name, ok := f.connection.given(cmd); ok {
		return usagef("--%s has no effect with --from, which replaces the cluster: remove one of them", name)
	}
	return nil
}

func (f *stateFlags) features(state *source.State) (kubeversion.Features, error) {
	minor := kubeversion.Latest
	switch {
	case f.version != "":
		parsed, err := kubeversion.Parse(f.version)
		if err != nil {
			return kubeversion.Features{}, usagef("--kubernetes-version: %w", err)
		}
		minor = parsed
	case state.Version != 0:
		minor = state.Version
	}
	features, err := kubeversion.For(minor).WithOverrides(f.gates)
	if err != nil {
		return features, usagef("--feature-gates: %w", err)
	}
	return features, nil
}

// partsAboveOf is partsAbove, or 0 if the state is changed.
func (f *stateFlags) partsAboveOf() int {
	if f.changes.given() {
		return 0
	}
	return f.partsAbove
}

func (f *stateFlags) readState(ctx context.Context) (*source.State, error) {
	progress := newProgress(f.app.streams)
	defer progress.done()
	if len(f.from) > 0 {
		state, err := source.LoadFiles(ctx, f.from, source.FileOptions{
			Stdin: f.app.in, Progress: progress.callback(), Retain: f.retain, Inventory: f.inventory, Places: f.places,
			Templates: f.templates,
			Parts:     (f.parts || f.partsOfFiles) && !f.changes.given(), PartsAbove: f.partsAboveOf(),
		})
		if err != nil {
			return nil, err
		}
		_, err = state.AddPlanned()
		return state, err
	}
	config, err := f.connection.config()
	if err != nil {
		return nil, err
	}
	if f.parts && !f.changes.given() {
		return source.Open(ctx, config, source.LiveOptions{Progress: progress.callback(), ReadDone: progress.done})
	}
	return source.List(ctx, config, source.LiveOptions{Progress: progress.callback(), Retain: f.retain, Inventory: f.inventory})
}

const defaultNamespace = "default"

func (f *stateFlags) defaultNamespace() string {
	if f.namespace != "" {
		return f.namespace
	}
	if len(f.from) > 0 {
		return defaultNamespace
	}
	return f.connection.namespace()
}

// knownNodes returns the nodes that have a Node object or that other objects are related to,
// sorted.
func (s *session) knownNodes() []string {
	named, related := s.State.NodeNames(), s.State.Graph.Nodes()
	if slices.Equal(named, related) {
		return named
	}
	nodes := append(named, related...)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// requireNode returns an error for nodes that do not exist: an answer about them would
// mislead, because the rules about a node's own name apply to any name. Instead is appended to
// the error and says what the user can do.
func (s *session) requireNode(name, instead string) error {
	known, err := s.knownNodesFor(name)
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(known, name); found {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("unknown node %q: there are no nodes in %s: add Node objects, or pods with spec.nodeName, with --from%s",
			name, s.State.Origin, instead)
	}
	return fmt.Errorf("unknown node %q in %s (%s)%s", name, s.State.Origin, render.Count(len(known), "node"), didYouMean(name, known))
}

// allMissing returns everything that could not be read.
func (s *session) allMissing() []missing {
	return unreadable(s.State.Missing())
}

func (f *stateFlags) readsStdin() bool {
	for _, path := range f.from {
		if path == stdinName {
			return true
		}
	}
	return false
}

const stdinName = "-"
