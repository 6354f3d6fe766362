package contain

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

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
