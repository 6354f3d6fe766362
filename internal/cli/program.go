package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
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
