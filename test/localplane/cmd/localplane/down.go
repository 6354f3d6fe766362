package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

func newDownCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "down",
		Short: "End the control plane that \"localplane up\" started",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			wasThere, err := localplane.Down(dir)
			if err != nil {
				return err
			}
			if wasThere {
				fmt.Fprintln(command.OutOrStdout(), "the control plane is down")
			} else {
				fmt.Fprintf(command.OutOrStdout(), "no control plane runs in %s\n", dir)
			}
			return nil
		},
	}
	addDirFlag(command, &dir)
	return command
}
