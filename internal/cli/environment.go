package cli

import (
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// fromEnvironment sets flags that are not on the command line from the environment. Names has
// the variable of each flag. An empty variable counts as unset.
func fromEnvironment(cmd *cobra.Command, names map[string]string) error {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		value := os.Getenv(names[flag])
		if value == "" || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Set(flag, value); err != nil {
			return usagef("%s in the environment: %w", names[flag], flagError(cmd, err))
		}
		if err := checkFlagValue(cmd, cmd.Flags().Lookup(flag)); err != nil {
			return usagef("%s in the environment: %w", names[flag], err)
		}
	}
	return nil
}
