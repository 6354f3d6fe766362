package command

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// known are the contexts, clusters or users of the kubeconfigs, as the flag names one.
func (c *Connection) known(flag string) []string {
	config, err := c.loader().RawConfig()
	switch {
	case err != nil:
		return nil
	case flag == "context":
		return slices.Sorted(maps.Keys(config.Contexts))
	case flag == "cluster":
		return slices.Sorted(maps.Keys(config.Clusters))
	}
	return slices.Sorted(maps.Keys(config.AuthInfos))
}

// addCompletions adds completion to the connection flags.
func (c *Connection) addCompletions(cmd *cobra.Command) {
	for _, flag := range []string{"context", "cluster", "user"} {
		Must(cmd.RegisterFlagCompletionFunc(flag, Complete(func() []string { return c.known(flag) })))
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
