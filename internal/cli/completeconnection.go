package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd/api"
)

// addCompletions adds completion to the connection flags.
func (c *connection) addCompletions(cmd *cobra.Command) {
	of := func(names func(*api.Config) []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			config, err := c.loader().RawConfig()
			if err != nil {
				return nil, noFiles
			}
			return names(&config), noFiles
		}
	}
	for flag, completion := range map[string]cobra.CompletionFunc{
		"context": of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.Contexts)) }),
		"cluster": of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.Clusters)) }),
		"user":    of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.AuthInfos)) }),
	} {
		must(cmd.RegisterFlagCompletionFunc(flag, completion))
	}
	completeNothing(cmd, "server", "tls-server-name", "token", "username", "password", "proxy-url", "request-timeout")
	for _, flag := range []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key"} {
		must(cmd.MarkFlagFilename(flag))
	}
}
