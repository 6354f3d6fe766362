package command

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd/api"
)

// addCompletions adds completion to the connection flags.
func (c *Connection) addCompletions(cmd *cobra.Command) {
	of := func(names func(*api.Config) []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			config, err := c.loader().RawConfig()
			if err != nil {
				return nil, NoFiles
			}
			return names(&config), NoFiles
		}
	}
	for flag, completion := range map[string]cobra.CompletionFunc{
		"context": of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.Contexts)) }),
		"cluster": of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.Clusters)) }),
		"user":    of(func(config *api.Config) []string { return slices.Sorted(maps.Keys(config.AuthInfos)) }),
	} {
		Must(cmd.RegisterFlagCompletionFunc(flag, completion))
	}
	for _, flag := range []string{"as", "as-group", "as-uid"} {
		if slices.Contains(c.names, flag) {
			CompleteNothing(cmd, flag)
		}
	}
	CompleteNothing(cmd, "server", "tls-server-name", "token", "username", "password", "proxy-url", "request-timeout")
	for _, flag := range []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key"} {
		Must(cmd.MarkFlagFilename(flag))
	}
}
