package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// binaryName is the name of the program, except as a plugin of kubectl.
const binaryName = "node-authorizer"

// programName returns how users invoke the program. A plugin of kubectl is called
// kubectl-NAME, with underscores for dashes.
func programName(args []string) string {
	base := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if plugin, ok := strings.CutPrefix(base, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return binaryName
}

// asInvoked returns a function that replaces the program's name in texts for people by how the
// user invokes it. The name is replaced where a command of the program follows. It is nil if the
// texts are right already.
func asInvoked(name string, root *cobra.Command) func(string) string {
	if name == binaryName {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		names = append(names, regexp.QuoteMeta(c.Name()))
	}
	ours := regexp.MustCompile(`(^|[^-./\w])(?:kubectl )?` + binaryName + ` (` + strings.Join(names, "|") + `|COMMAND)\b`)
	with := "${1}" + strings.ReplaceAll(name, "$", "$$") + " ${2}"
	return func(text string) string { return ours.ReplaceAllString(text, with) }
}

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

// doubleDashes lets server and client accept flags with one dash, as kops' node-authorizer did
// (-authorizer=aws), because its unit files and manifests may use that form. Other commands
// did not exist there.
func doubleDashes(root *cobra.Command, args []string) []string {
	if len(args) == 0 || args[0] != "server" && args[0] != "client" {
		return args
	}
	command, _, err := root.Find(args[:1])
	if err != nil {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args[1:] {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && len(name) > 1 && command.Flags().Lookup(name) != nil {
			args[i+1] = "-" + arg
		}
	}
	return args
}
