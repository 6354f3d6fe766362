package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

func newUpCommand() *cobra.Command {
	var flags planeFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane that runs until \"localplane down\"",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return up(command, &flags)
		},
	}
	addDirFlag(command, &flags.dir)
	flags.add(command)
	return command
}

func up(command *cobra.Command, flags *planeFlags) error {
	ctx, out := command.Context(), command.OutOrStdout()
	if state, err := localplane.ReadState(flags.dir); err == nil && state.Running() {
		fmt.Fprintf(out, "a control plane runs already in %s\n\n", flags.dir)
		printUse(out, flags.dir, state)
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := flags.options(); err != nil {
		return err
	}
	if _, err := flags.nodes(); err != nil {
		return err
	}
	if _, err := localplane.Build(ctx, out); err != nil {
		return err
	}
	supervisor, progress, err := startSupervisor(flags.dir)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ctx.Done():
			// The supervisor has its own session, so an interrupt from a terminal does not reach it.
			_ = supervisor.Process.Signal(syscall.SIGTERM)
		case <-ended:
		}
	}()
	// The supervisor closes its end when the plane is ready or has failed.
	if _, err := io.Copy(out, progress); err != nil {
		return fmt.Errorf("follow the start of the control plane: %w", err)
	}
	state, err := localplane.ReadState(flags.dir)
	if err != nil || state.Owner.PID != supervisor.Process.Pid || ctx.Err() != nil {
		// It has already printed the cause, and exits with an error.
		_ = supervisor.Wait()
		return fmt.Errorf("the control plane did not start; its logs are in %s", filepath.Join(flags.dir, "logs"))
	}
	fmt.Fprintln(out)
	printUse(out, flags.dir, state)
	return nil
}

// startSupervisor runs this program again, detached from the terminal, with "supervise"
// instead of "up".
func startSupervisor(dir string) (*exec.Cmd, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	logDir := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logDir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	log, err := os.Create(filepath.Join(logDir, localplane.SupervisorLog))
	if err != nil {
		return nil, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	defer log.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	defer writer.Close()

	supervisor := exec.Command(self, append([]string{"supervise"}, os.Args[2:]...)...)
	supervisor.Stdout, supervisor.Stderr = log, log
	supervisor.ExtraFiles = []*os.File{writer}
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := supervisor.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	return supervisor, reader, nil
}

func printUse(out io.Writer, dir string, state *localplane.State) {
	fmt.Fprintf(out, `The control plane is up: %s
Use it with:

  export KUBECONFIG=%s
  kubectl get nodes

Its logs are in %s
End it with: %s
`, state.Server, state.AdminKubeconfig, state.LogDir, downCommand(dir))
}

// downCommand returns the command that stops the plane.
func downCommand(dir string) string {
	if dir == userDir() {
		return "make down"
	}
	return "localplane down --dir " + dir
}
