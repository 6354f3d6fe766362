package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// progressFD is the file descriptor from which "up" reads progress.
const progressFD = 3

// newSuperviseCommand returns the command of the process that "up" leaves running. It
// owns the plane, which ends with it.
func newSuperviseCommand() *cobra.Command {
	var flags planeFlags
	command := &cobra.Command{
		Use:    "supervise",
		Short:  "Own a control plane until a signal ends it; \"up\" runs it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			// The components must not hold the pipe open.
			syscall.CloseOnExec(progressFD)
			progress := os.NewFile(progressFD, "progress")
			if progress == nil {
				return fmt.Errorf("file descriptor %d is not open: \"localplane up\" runs this command", progressFD)
			}
			options, err := flags.options()
			if err != nil {
				return err
			}
			options.Progress = progress
			plane, err := flags.start(command.Context(), options)
			if err != nil {
				fmt.Fprintln(progress, "error:", err)
				return err
			}
			progress.Close()
			<-command.Context().Done()
			return plane.Stop()
		},
	}
	addDirFlag(command, &flags.dir)
	flags.add(command)
	return command
}
