package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/nodescopes"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

func newScope(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scope",
		Short: "Derive, check and install NodeScopes, which hold agents to their own node",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newScopeSuggest(a), newScopeCheck(a), newScopeAuthorizationConfig(a), newScopeAdmissionPolicy(a))
	return cmd
}

// manifestFormat is the output format of commands that write Kubernetes objects with comments.
const manifestFormat render.Format = "manifest"

// scopeFlags say where NodeScopes come from.
type scopeFlags struct {
	app        *app
	files      []string
	from       []string
	connection *connection
}

func addScopes(a *app, cmd *cobra.Command) *scopeFlags {
	f := &scopeFlags{app: a}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil,
		"read the NodeScopes of a file or folder of manifests, or of - for stdin, instead of a cluster's; can be repeated")
	cmd.Flags().StringArrayVar(&f.from, "from", nil,
		"read them from the manifests of a cluster's state, as --from of other commands; can be repeated")
	must(cmd.MarkFlagFilename("filename"))
	must(cmd.MarkFlagFilename("from"))
	f.connection = addConnection(cmd)
	f.connection.otherwise = ", or name manifests of NodeScopes with -f"
	return f
}

// load returns the scopes, sorted by name, and the configuration of the cluster; nil without one.
func (f *scopeFlags) load(cmd *cobra.Command) ([]*v1alpha1.NodeScope, *rest.Config, error) {
	if paths := slices.Concat(f.files, f.from); len(paths) > 0 {
		if name, ok := f.connection.given(cmd); ok {
			return nil, nil, usagef("--%s has no effect with -f and --from, which replace the cluster: remove one of them", name)
		}
		scopes, err := nodescopes.Read(cmd.Context(), paths, f.app.in)
		return scopes, nil, err
	}
	config, err := f.connection.config()
	if err != nil {
		return nil, nil, err
	}
	scopes, err := nodescopes.List(cmd.Context(), config)
	return scopes, config, err
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

// addMinor adds the flag for the version that a configuration is made for.
func addMinor(cmd *cobra.Command) *string {
	version := cmd.Flags().String("kubernetes-version", "", fmt.Sprintf(
		"write what Kubernetes %s … %s reads (default: the server's version, else what all since 1.32 read)",
		kubeversion.Oldest, kubeversion.Latest,
	))
	must(cmd.RegisterFlagCompletionFunc("kubernetes-version", complete(minorNames)))
	return version
}

func minorNames() []string {
	var versions []string
	for _, m := range kubeversion.Minors() {
		versions = append(versions, m.String())
	}
	return versions
}

// print writes text for another program to stdout.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.out, text); err != nil {
		return errors.Join(errors.New("writing the result"), err)
	}
	return nil
}
