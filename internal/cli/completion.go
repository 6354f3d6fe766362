package cli

import (
	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

func newCompletion(a *command.App) *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(a.Out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(a.Out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(a.Out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(a.Out) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Prints a script with which a shell completes the arguments of node-authorizer:
commands, flags, their words, and the names of nodes, namespaces, objects, service
accounts, users and contexts. Names come from the cluster of the kubeconfig, or from the
files that --from names before the cursor. Completion waits three seconds at most, reads
only the metadata of objects, and offers nothing if names cannot be read.

As a plugin of kubectl, completion goes through kubectl's own. Put an
executable file named kubectl_complete-node_authorizer on the PATH:

  #!/bin/sh
  kubectl node-authorizer __complete "$@"

The packages (.deb, .rpm) bring the scripts of bash, zsh, fish and kubectl.`,
		Example: `  # Load completion into the current shell
  source <(node-authorizer completion bash)

  # Load it into each new shell
  node-authorizer completion bash > /etc/bash_completion.d/node-authorizer
  node-authorizer completion zsh > "${fpath[1]}/_node-authorizer"
  node-authorizer completion fish > ~/.config/fish/completions/node-authorizer.fish`,
		Args:              command.Exactly("SHELL"),
		ValidArgsFunction: command.Complete(func() []string { return names }),
		RunE: func(cmd *cobra.Command, args []string) error {
			generate, ok := shells[args[0]]
			if !ok {
				return command.Usagef("shell %q: want bash, zsh, fish or powershell%s", args[0], command.DidYouMean(args[0], names))
			}
			return generate(cmd.Root())
		},
	}
}
