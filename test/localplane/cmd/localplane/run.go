package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
)

func newRunCommand() *cobra.Command {
	var flags planeFlags
	command := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a command against a control plane that lives as long as the command",
		Long: `run starts a control plane, runs the command with KUBECONFIG set to an
administrator's kubeconfig, ends the control plane, and exits with the status of
the command.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runWithPlane(command, &flags, args)
		},
	}
	command.Flags().StringVar(&flags.dir, "dir", "", "folder of the control plane (default a temporary one, which is removed)")
	flags.add(command)
	return command
}

func runWithPlane(command *cobra.Command, flags *planeFlags, args []string) error {
	options, err := flags.options()
	if err != nil {
		return err
	}
	options.Progress = command.ErrOrStderr()
	plane, err := flags.start(command.Context(), options)
	if err != nil {
		return err
	}
	child := exec.CommandContext(command.Context(), args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), "KUBECONFIG="+plane.AdminKubeconfig(), dirVariable+"="+plane.Dir)
	// An interrupt reaches the child from the terminal, or from this process.
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 30 * time.Second
	runErr := child.Run()
	if err := plane.Stop(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if errors.As(runErr, &exit) {
		return exitStatus(exit.ExitCode())
	}
	if runErr != nil {
		return fmt.Errorf("run %s: %w", args[0], runErr)
	}
	return nil
}
