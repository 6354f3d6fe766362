package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection is kubectl's flags about which cluster to talk to and how.
type connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	names     []string
	// otherwise is the end of an error about the connection: what a command can
	// do without one.
	otherwise string
}

const connectionHeading = "Connection, as in kubectl"

// addConnection adds the flags. Those for impersonation are left out, because
// --as names the user asked about, and so is -n, which not every command has.
func addConnection(cmd *cobra.Command) *connection {
	c := &connection{
		rules:     clientcmd.NewDefaultClientConfigLoadingRules(),
		overrides: &clientcmd.ConfigOverrides{},
	}
	var absent clientcmd.FlagInfo
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.AuthOverrideFlags.Impersonate = absent
	flags.AuthOverrideFlags.ImpersonateUID = absent
	flags.AuthOverrideFlags.ImpersonateGroups = absent
	flags.ContextOverrideFlags.Namespace = absent
	flags.ClusterOverrideFlags.APIServer.ShortName = "s"

	set := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	set.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "path to the kubeconfig file")
	clientcmd.BindOverrideFlags(c.overrides, set, flags)
	set.VisitAll(func(f *pflag.Flag) {
		f.Usage = strings.ToLower(f.Usage[:1]) + strings.TrimSuffix(f.Usage[1:], ".")
		c.names = append(c.names, f.Name)
		must(set.SetAnnotation(f.Name, flagHeading, []string{connectionHeading}))
	})
	cmd.Flags().AddFlagSet(set)
	return c
}

func (c *connection) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, c.overrides)
}

// given names the first connection flag that was set on the command line.
func (c *connection) given(cmd *cobra.Command) (string, bool) {
	for _, name := range c.names {
		if cmd.Flags().Changed(name) {
			return name, true
		}
	}
	return "", false
}

// config turns the flags and the kubeconfig into a client configuration.
func (c *connection) config() (*rest.Config, error) {
	config, err := c.loader().ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("no cluster is configured: set KUBECONFIG or --kubeconfig%s", c.otherwise)
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w; check the connection flags%s", oneLine(err), c.otherwise)
	}
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// namespace is the one that the kubeconfig's context sets, else "default".
func (c *connection) namespace() string {
	if namespace, _, err := c.loader().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return defaultNamespace
}

// oneLine flattens an error of several lines.
func oneLine(err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
