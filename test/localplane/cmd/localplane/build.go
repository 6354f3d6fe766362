package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the programs of the control plane and print the folder they are in",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			dir, err := localplane.Build(command.Context(), command.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), dir)
			return nil
		},
	}
}
