package command

import (
	"maps"
	"slices"
	"strings"

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

// contextNames offers contexts, after a comma those that are not named before it.
func (c *Connection) contextNames(_ *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	named := ""
	if c.several {
		named = text[:strings.LastIndex(text, ",")+1]
	}
	before := strings.Split(named, ",")
	return Prefixed(named, slices.DeleteFunc(c.known("context"), func(name string) bool { return slices.Contains(before, name) })), NoFiles
}

func (c *Connection) addCompletions(cmd *cobra.Command) {
	Must(cmd.RegisterFlagCompletionFunc("context", c.contextNames))
	for _, flag := range []string{"cluster", "user"} {
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
