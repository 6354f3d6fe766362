package contain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
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

func newScopeAdmissionPolicy(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admission-policy",
		Short: "Print ValidatingAdmissionPolicies that enforce NodeScopes as far as admission can",
		Long: `Prints a ValidatingAdmissionPolicy with its binding for each NodeScope, for clusters
whose API server cannot be configured: EKS, GKE, AKS. The policies need Kubernetes 1.30
and no server of node-authorizer.

Policies see writes only. Policies enforce which tokens may write, objects with the name
of the node, pods whose node the written object shows, what the Node authorizer and
NodeRestriction let a node write, and what no rule names. Policies see no reads, and not
the pod of an eviction or of an exec. Of an impersonated request they see the user and
the extra values that the requester chose, so they do not hold an account that may
impersonate others. Comments name the parts that are not enforced; -o json has them in
cannotExpress. The enforced part is never weaker than the NodeScope, and about labels of
nodes and mirror pods it is stricter.

A scope in mode Observe gets a binding that audits, and one in mode Enforce one that
denies, unless --mode says otherwise.

Exit status: 0 printed, 2 the scopes could not be read, or are not valid.`,
		Example: `  node-authorizer scope admission-policy -f scopes/ | kubectl apply -f -

  # Warn first
  node-authorizer scope admission-policy -f cilium.yaml --mode Warn

  # What the policies do not enforce
  node-authorizer scope admission-policy -f scopes/ -o json | jq '.policies[] | {scope, cannotExpress}'`,
	}
	scopes := addScopes(a, cmd)
	modes := []string{string(registrationv1.Audit), string(registrationv1.Warn), string(registrationv1.Deny)}
	mode := cmd.Flags().String("mode", "", "what happens to refused writes: Audit, Warn or Deny (default: by the mode of the scope)")
	command.Must(cmd.RegisterFlagCompletionFunc("mode", command.Complete(func() []string { return modes })))
	output := command.AddFormat(cmd, manifestFormat, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if *mode != "" && !slices.Contains(modes, *mode) {
			return command.Usagef("--mode %q: want Audit, Warn or Deny%s", *mode, command.DidYouMean(*mode, modes))
		}
		objects, _, err := scopes.load(cmd)
		if err != nil {
			return err
		}
		return writePolicies(a, objects, registrationv1.ValidationAction(*mode), format)
	})
	return cmd
}

func writePolicies(a *command.App, scopes []*v1alpha1.NodeScope, action registrationv1.ValidationAction, format render.Format) error {
	if len(scopes) == 0 {
		return errors.New("the cluster has no NodeScopes: name manifests of scopes with -f")
	}
	var policies []*generate.Policy
	var problems []error
	for _, s := range scopes {
		for _, err := range nodescope.Validate(s) {
			problems = append(problems, fmt.Errorf("NodeScope %s: %w", s.Name, err))
		}
		policies = append(policies, generate.Generate(s, action))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	written, err := generate.Write(policies)
	if err != nil {
		return err
	}
	where := "cannotExpress of each policy"
	if format == manifestFormat {
		where = "the comment above each policy"
	}
	a.Warn("the policies do not enforce all that the NodeScopes say, and see no reads: %s lists what is missing", where)
	if format == manifestFormat {
		_, err := io.WriteString(a.Out, written.Manifest)
		return err
	}
	return a.Write(written, format)
}

const (
	authorizationFormat render.Format = "authorization-configuration"
	webhookFormat       render.Format = "webhook-configuration"
)

func newScopeAuthorizationConfig(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "authorization-config",
		Short: "Print the configuration with which kube-apiserver asks this server about scoped accounts",
		Long: `Prints an AuthorizationConfiguration for kube-apiserver: a webhook before Node and
RBAC, with match conditions that send only the accounts of the NodeScopes at hand, and
with --quarantines also all nodes and all tokens that are bound to a node. Answers are
not cached, so that a quarantine takes effect at once. With -o webhook-configuration it
prints the MutatingWebhookConfiguration for what only admission sees: the names and
content of objects that are written.

The accounts are listed by name as long as the API server's limits allow, else by
namespace, else as all service accounts. The server has no opinion about others.
Print it again when scopes get other subjects.

With --failure-policy Deny, requests that are sent are refused while the server does not
answer; with NoOpinion they are not scoped then. While all scopes at hand observe, the
default is NoOpinion, so that an outage changes nothing. As soon as one enforces, and
with --quarantines, it is Deny: print it again before you set mode: Enforce. Comments in
the output say what an outage means. The server's own users are never sent.

Exit status: 0 printed, 2 the scopes could not be read, or there is nothing to send.`,
		Example: `  node-authorizer scope authorization-config -f scopes/ > authorization.yaml

  # Quarantines too, for the scopes of a cluster
  node-authorizer scope authorization-config --quarantines

  # Quarantines alone, for a cluster that is being made
  node-authorizer scope authorization-config --quarantines -f /dev/null

  # The part for admission
  node-authorizer scope authorization-config -f scopes/ -o webhook-configuration`,
	}
	scopes := addScopes(a, cmd)
	o := &generate.Options{}
	cmd.Flags().BoolVar(&o.Quarantines, "quarantines", false, "send all nodes and all tokens that are bound to a node, for quarantines")
	policies := []string{string(generate.Deny), string(generate.NoOpinion)}
	policy := cmd.Flags().String("failure-policy", "",
		"what happens to requests while the server does not answer: Deny or NoOpinion "+
			"(default: NoOpinion while all scopes observe, else Deny)")
	command.Must(cmd.RegisterFlagCompletionFunc("failure-policy", command.Complete(func() []string { return policies })))
	cmd.Flags().StringArrayVar(&o.ServerUsers, "server-user", []string{"system:serviceaccount:node-authorizer:node-authorizer"},
		"a user as which the server itself asks the API server, which is never sent; can be repeated")
	cmd.Flags().StringVar(&o.Kubeconfig, "webhook-kubeconfig", "/etc/kubernetes/node-authorizer/apiserver/authorize.kubeconfig",
		"the kubeconfig, on the API server's machine, with the address of the server's /authorize")
	command.Must(cmd.MarkFlagFilename("webhook-kubeconfig"))
	cmd.Flags().StringVar(&o.URL, "admit-url", "https://127.0.0.1:10270/admit", "the address of the server's /admit")
	command.CompleteNothing(cmd, "server-user", "admit-url")
	version := cmd.Flags().String("kubernetes-version", "", fmt.Sprintf(
		"write what Kubernetes %s … %s reads (default: the server's version, else what all since 1.32 read)",
		kubeversion.Oldest, kubeversion.Latest,
	))
	command.Must(cmd.RegisterFlagCompletionFunc("kubernetes-version", command.Complete(command.MinorNames)))
	output := command.AddFormat(cmd, authorizationFormat, webhookFormat)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if *policy != "" && !slices.Contains(policies, *policy) {
			return command.Usagef(
				"--failure-policy %q: want %s or %s%s", *policy, policies[0], policies[1], command.DidYouMean(*policy, policies),
			)
		}
		o.FailurePolicy = generate.FailurePolicy(*policy)
		return scopeWebhooks(a, cmd, scopes, o, *version, format)
	})
	return cmd
}

func scopeWebhooks(
	a *command.App, cmd *cobra.Command, f *scopeFlags, o *generate.Options, version string, format render.Format,
) (err error) {
	if version != "" {
		if o.Minor, err = kubeversion.Parse(version); err != nil {
			return command.Usagef("--kubernetes-version: %w", err)
		}
	}
	scopes, config, err := f.load(cmd)
	if err != nil && !(errors.Is(err, generate.ErrNone) && o.Quarantines) {
		return err
	}
	o.Scopes = scopes
	o.FailurePolicy = cmp.Or(o.FailurePolicy, o.DefaultFailurePolicy())
	if o.Minor == 0 {
		if o.Minor, err = serverMinor(config); err != nil {
			return err
		}
	}
	write := generate.Authorization
	if format == webhookFormat {
		write = generate.Admission
	}
	text, err := write(o)
	if err != nil {
		return err
	}
	if o.FailurePolicy == generate.Deny && o.OnlyObserves() {
		a.Warn("all NodeScopes observe, but while the server does not answer their accounts are refused: " +
			"--failure-policy NoOpinion does not refuse them")
	}
	_, err = io.WriteString(a.Out, text)
	return err
}
