package command

import (
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// FromEnvironment sets flags that are not on the command line from the environment. Names has
// the variable of each flag. An empty variable counts as unset.
func FromEnvironment(cmd *cobra.Command, names map[string]string) error {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		value := os.Getenv(names[flag])
		if value == "" || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Set(flag, value); err != nil {
			return Usagef("%s in the environment: %w", names[flag], FlagError(cmd, err))
		}
		if err := checkFlagValue(cmd, cmd.Flags().Lookup(flag)); err != nil {
			return Usagef("%s in the environment: %w", names[flag], err)
		}
	}
	return nil
}
