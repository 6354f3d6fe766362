package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// StateFlags define where a cluster's state comes from and how the cluster behaves.
type StateFlags struct {
	App        *App
	From       []string
	Connection *Connection
	Namespace  string
	version    string
	gates      string
	// Authorization is the path of an AuthorizationConfiguration.
	Authorization string
	// Retain keeps the objects that a snapshot needs.
	Retain bool
	// Inventory reads what attack paths need.
	Inventory bool
	// Parts reads of a cluster only what the answer depends on, unless the state is changed.
	Parts bool
	// PartsOfFiles does so of a snapshot only.
	PartsOfFiles bool
	// PartsAbove does so of a snapshot with more pods than that.
	PartsAbove int
	// Places notes where objects are in files.
	Places bool
	// Templates adds the pods that workloads in files make.
	Templates bool
	Changes   changeFlags
}

// AddState adds the flags of every command that uses a cluster's state.
func AddState(a *App, cmd *cobra.Command) *StateFlags {
	f := &StateFlags{App: a}
	cmd.Flags().StringArrayVar(&f.From, "from", nil,
		"read the state from a file or folder of manifests, a snapshot, or - for stdin, instead of a cluster; can be repeated")
	Must(cmd.MarkFlagFilename("from"))
	f.Connection = AddConnection(cmd)
	f.Connection.Otherwise = ", or answer from files with --from"
	return f
}

func (f *StateFlags) AddBehaviour(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.version, "kubernetes-version", "",
		fmt.Sprintf(
			"decide as Kubernetes %s … %s does (default: the server's version, else %s)", kubeversion.Oldest, kubeversion.Latest,
			kubeversion.Latest,
		))
	cmd.Flags().StringVar(&f.gates, "feature-gates", "", "set feature gates that matter to node authorization: NAME=true,NAME=false")
	Must(cmd.RegisterFlagCompletionFunc("kubernetes-version", Complete(MinorNames)))
	Must(cmd.RegisterFlagCompletionFunc("feature-gates", Complete(func() []string {
		var gates []string
		for _, g := range kubeversion.Gates() {
			gates = append(gates, string(g)+"=")
		}
		return gates
	})))
}

// MinorNames are the versions of Kubernetes that are supported.
func MinorNames() []string {
	var versions []string
	for _, m := range kubeversion.Minors() {
		versions = append(versions, m.String())
	}
	return versions
}

// AddAuthorization adds the flag that replaces the chain of authorizers.
func (f *StateFlags) AddAuthorization(cmd *cobra.Command, usual string) {
	cmd.Flags().StringVar(&f.Authorization, "authorization-config", "",
		"ask the authorizers of this AuthorizationConfiguration, the file that kube-apiserver reads, webhooks included "+
			"(default: "+usual+")")
	Must(cmd.MarkFlagFilename("authorization-config"))
}

// AddNamespace adds -n with the usage of the command.
func (f *StateFlags) AddNamespace(cmd *cobra.Command, usage string) {
	cmd.Flags().FuncP("namespace", "n", usage, func(text string) error {
		if f.Namespace != "" && f.Namespace != text { // the last of two would silently win
			return fmt.Errorf("it is given twice, as %s and %s: write KIND/NAMESPACE/NAME where namespaces differ", f.Namespace, text)
		}
		if problems := validation.IsDNS1123Label(text); text != "" && len(problems) > 0 {
			return fmt.Errorf("no namespace can have this name: %s", problems[0])
		}
		f.Namespace = text
		return nil
	})
	Must(cmd.RegisterFlagCompletionFunc("namespace", f.namespaceNames))
}

// Session is a loaded state with its evaluator.
type Session struct {
	*evaluate.Evaluator
	// Configured is the path of the AuthorizationConfiguration; empty for the default
	// authorizers.
	Configured string
	Names      *resources.Mapper
	// Namespace is the given namespace, or else the kubeconfig's, or else "default".
	Namespace string
	// ofFiles is true if the state is of files, not of a cluster.
	ofFiles bool
}

// Load reads the state and writes warnings about it to stderr.
func (f *StateFlags) Load(cmd *cobra.Command) (*Session, error) {
	if err := f.Check(cmd); err != nil {
		return nil, err
	}
	configuration, err := f.configuration()
	if err != nil {
		return nil, err
	}
	f.Inventory = f.Inventory || f.Changes.Given()
	state, err := f.ReadState(cmd.Context())
	if err != nil {
		return nil, err
	}
	f.App.WarnState(state)
	applied, notes, err := f.Change(cmd.Context(), state)
	if err != nil {
		return nil, err
	}
	f.App.noteChanges(applied, notes)
	return f.NewSession(cmd.Context(), state, configuration)
}

// WarnState writes warnings about what was read.
func (a *App) WarnState(state *source.State) {
	for _, line := range state.Warnings() {
		a.Warn("%s", line)
	}
	if line := leftOut(state); line != "" {
		a.Warn("%s", line)
	}
}

// NewSession makes the evaluator of a state.
func (f *StateFlags) NewSession(ctx context.Context, state *source.State, configuration *chain.Configuration) (*Session, error) {
	features, err := f.Features(state)
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
		f.App.Warn("%s", line)
	}
	session := &Session{
		Evaluator: evaluator, Configured: f.Authorization, Names: NewNames(state),
		Namespace: f.DefaultNamespace(), ofFiles: len(f.From) > 0,
	}
	f.noteCluster(session)
	return session, nil
}

// NewNames returns the names of the resources that the cluster serves; of the built-in ones, if that is not known.
func NewNames(state *source.State) *resources.Mapper {
	if state.Resources == nil {
		return resources.Offline()
	}
	all := make([]resources.Resource, len(state.Resources))
	for i, r := range state.Resources {
		all[i] = resources.Resource(r)
	}
	return resources.Discovered(all)
}

// Check validates the flags before anything is read.
func (f *StateFlags) Check(cmd *cobra.Command) error {
	if f.version != "" {
		if _, err := kubeversion.Parse(f.version); err != nil {
			return Usagef("--kubernetes-version: %w", err)
		}
	}
	if err := f.Changes.check(f.From); err != nil || len(f.From) == 0 {
		return err
	}
	if name, ok := f.Connection.Given(cmd); ok {
		return Usagef("--%s has no effect with --from, which replaces the cluster: remove one of them", name)
	}
	return nil
}

// Features are the features of the version that is to be decided by.
func (f *StateFlags) Features(state *source.State) (kubeversion.Features, error) {
	minor := kubeversion.Latest
	switch {
	case f.version != "":
		parsed, err := kubeversion.Parse(f.version)
		if err != nil {
			return kubeversion.Features{}, Usagef("--kubernetes-version: %w", err)
		}
		minor = parsed
	case state.Version != 0:
		minor = state.Version
	}
	features, err := kubeversion.For(minor).WithOverrides(f.gates)
	if err != nil {
		return features, Usagef("--feature-gates: %w", err)
	}
	return features, nil
}

func (f *StateFlags) ReadState(ctx context.Context) (*source.State, error) {
	progress := NewProgress(f.App.Streams)
	defer progress.Done()
	if len(f.From) > 0 {
		options := source.FileOptions{
			Stdin: f.App.In, Progress: progress.Callback(), Retain: f.Retain, Inventory: f.Inventory, Places: f.Places,
			Templates: f.Templates,
		}
		if !f.Changes.Given() {
			options.Parts, options.PartsAbove = f.Parts || f.PartsOfFiles, f.PartsAbove
		}
		state, err := source.LoadFiles(ctx, f.From, options)
		if err != nil {
			return nil, err
		}
		_, err = state.AddPlanned()
		return state, err
	}
	config, err := f.Connection.Config()
	if err != nil {
		return nil, err
	}
	if f.Parts && !f.Changes.Given() {
		return source.Open(ctx, config, source.LiveOptions{Progress: progress.Callback(), ReadDone: progress.Done})
	}
	return source.List(ctx, config, source.LiveOptions{Progress: progress.Callback(), Retain: f.Retain, Inventory: f.Inventory})
}

const DefaultNamespace = "default"

// DefaultNamespace is the given namespace, or else the one of the kubeconfig, or else "default".
func (f *StateFlags) DefaultNamespace() string {
	if f.Namespace != "" {
		return f.Namespace
	}
	if len(f.From) > 0 {
		return DefaultNamespace
	}
	return f.Connection.namespace()
}

// KnownNodes returns the nodes that have a Node object or that other objects are related to,
// sorted.
func (s *Session) KnownNodes() []string {
	nodes := append(s.State.NodeNames(), s.State.Graph.Nodes()...)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// RequireNode returns an error for nodes that do not exist: an answer about them would
// mislead, because the rules about a node's own name apply to any name. Instead is appended to
// the error and says what the user can do.
func (s *Session) RequireNode(name, instead string) error {
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
	return fmt.Errorf("unknown node %q in %s (%s)%s", name, s.State.Origin, render.Count(len(known), "node"), DidYouMean(name, known))
}

// AllMissing returns everything that could not be read.
func (s *Session) AllMissing() []Missing { return Unreadable(s.State.Missing()) }

// MissingOf returns what could not be read and is wanted.
func (s *Session) MissingOf(wanted func(source.Missing) bool) []Missing {
	return Unreadable(slices.DeleteFunc(slices.Clone(s.State.Missing()), func(m source.Missing) bool { return !wanted(m) }))
}

// ReadsStdin reports whether --from names stdin.
func (f *StateFlags) ReadsStdin() bool {
	return slices.Contains(f.From, StdinName)
}

const StdinName = "-"

// StateInfo describes the state that an answer comes from.
type StateInfo struct {
	// Origin says in words where the state comes from: a cluster, or which files.
	Origin string `json:"origin"`
	// KubernetesVersion is the minor version whose rules apply, such as 1.37.
	KubernetesVersion string `json:"kubernetesVersion"`
	// AuthorizationConfig is the file of the AuthorizationConfiguration; empty for the
	// default authorizers.
	AuthorizationConfig string `json:"authorizationConfig,omitempty"`
	// Authorizers are the authorizers of the chain, in order.
	Authorizers []string `json:"authorizers"`
}

func (s *Session) Info() StateInfo {
	// The authorizer of system:masters is left out: it cannot be configured, and rarely matters.
	isMasters := func(name string) bool { return name == chain.NameMasters }
	return StateInfo{
		Origin:              s.State.Origin,
		KubernetesVersion:   s.Features.Minor().String(),
		AuthorizationConfig: s.Configured,
		Authorizers:         slices.DeleteFunc(s.Chain.Names(), isMasters),
	}
}

// ForPage converts it for a page.
func (s StateInfo) ForPage() report.State {
	return report.State{Origin: s.Origin, KubernetesVersion: s.KubernetesVersion}
}
