package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// Without a completion, a shell offers the files of the folder.
func TestEachFlagCompletesToWhatItTakes(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, completes := cmd.GetFlagCompletionFunc(f.Name)
			_, file := f.Annotations[cobra.BashCompFilenameExt]
			_, folder := f.Annotations[cobra.BashCompSubdirsInDir]
			if f.NoOptDefVal == "" && !completes && !file && !folder {
				t.Errorf("%s --%s (%s): register a completion, or mark the flag as a file or folder", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
		for _, inner := range cmd.Commands() {
			check(inner)
		}
	}
	check(root((&command.App{}), binaryName))
}
