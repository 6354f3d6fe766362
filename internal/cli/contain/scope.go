package contain

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

func NewScope(a *command.App) *cobra.Command {
	return command.NewGroup("scope", "Derive, check and install NodeScopes, which hold agents to their own node",
		newScopeSuggest(a), newScopeCheck(a), newScopeAuthorizationConfig(a), newScopeAdmissionPolicy(a))
}

// manifestFormat is the output format of commands that write Kubernetes objects with comments.
const manifestFormat render.Format = "manifest"

// scopeFlags say where NodeScopes come from: from the manifests of -f, else from a cluster's state.
type scopeFlags struct {
	files []string
	state *command.StateFlags
}

// addScopes adds the flags of commands about NodeScopes that need nothing else of a state.
func addScopes(a *command.App, cmd *cobra.Command) *scopeFlags {
	state := command.AddState(a, cmd)
	state.Connection.Otherwise = ", or name manifests of NodeScopes with -f"
	return addScopeFiles(cmd, state)
}

func addScopeFiles(cmd *cobra.Command, state *command.StateFlags) *scopeFlags {
	f := &scopeFlags{state: state}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil,
		"read the NodeScopes of a file or folder of manifests, or of - for stdin, instead of the NodeScopes of the state; can be repeated")
	command.Must(cmd.MarkFlagFilename("filename"))
	return f
}

// read returns the scopes of -f, sorted by name; nil without -f.
func (f *scopeFlags) read(ctx context.Context) ([]*v1alpha1.NodeScope, error) {
	if len(f.files) == 0 {
		return nil, nil
	}
	return generate.Read(ctx, f.files, f.state.App.In)
}

// load returns the scopes, sorted by name, and the configuration of the cluster; nil without one.
func (f *scopeFlags) load(cmd *cobra.Command) ([]*v1alpha1.NodeScope, *rest.Config, error) {
	if err := f.state.Check(cmd); err != nil {
		return nil, nil, err
	}
	if len(f.files) > 0 {
		if len(f.state.From) > 0 {
			return nil, nil, command.Usagef("--from has no effect with -f, which replaces the NodeScopes of the state: remove one of them")
		}
		if name, ok := f.state.Connection.Given(cmd); ok {
			return nil, nil, command.Usagef("--%s has no effect with -f, which replaces the cluster: remove one of them", name)
		}
		scopes, err := f.read(cmd.Context())
		return scopes, nil, err
	}
	if len(f.state.From) > 0 {
		state, err := f.state.ReadState(cmd.Context())
		if err != nil {
			return nil, nil, err
		}
		f.state.App.WarnState(state)
		scopes, err := scopesOf(state)
		return scopes, nil, err
	}
	config, err := f.state.Connection.Config()
	if err != nil {
		return nil, nil, err
	}
	scopes, err := generate.List(cmd.Context(), config)
	return scopes, config, err
}

// scopesOf returns the NodeScopes of a state, of which there must be some.
func scopesOf(state *source.State) ([]*v1alpha1.NodeScope, error) {
	for _, missing := range state.Missing() {
		if missing.Kind == source.NodeScopes {
			return nil, fmt.Errorf("%s: the NodeScopes could not be read: %s", state.Origin, missing.Reason)
		}
	}
	scopes := state.NodeScopes()
	if len(scopes) == 0 {
		return nil, fmt.Errorf("%w in %s: name manifests of scopes with -f", generate.ErrNone, state.Origin)
	}
	return scopes, nil
}

// serverMinor is the version of a cluster; 0 without a cluster, and for versions that are not
// supported.
func serverMinor(config *rest.Config) (kubeversion.Minor, error) {
	if config == nil {
		return 0, nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("ask cluster %s for its version: %w; or give --kubernetes-version", config.Host, err)
	}
	minor, err := kubeversion.Parse(source.BehavesAs(info))
	if err != nil {
		return 0, fmt.Errorf("cluster %s: %w; give --kubernetes-version", config.Host, err)
	}
	return minor, nil
}
