package main

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

func newStatusCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the processes of the control plane; exit status 1 when none runs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			state, err := localplane.ReadState(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil || !state.Running() {
				fmt.Fprintf(out, "no control plane runs in %s\n", dir)
				return exitStatus(1)
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "PROCESS\tPID\tSTATE\tLOG")
			for _, p := range state.Processes {
				how := "running"
				if !p.Running() {
					how = "ended"
				}
				fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", p.Name, p.PID, how, p.Log)
			}
			if err := table.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(out)
			printUse(out, dir, state)
			return nil
		},
	}
	addDirFlag(command, &dir)
	return command
}
