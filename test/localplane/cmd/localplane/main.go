// Command localplane runs a Kubernetes control plane with hollow nodes on this machine.
// See package localplane.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// exitStatus is an error without a message that sets the exit status.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run(ctx context.Context, args []string) int {
	command := newCommand()
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	default:
		fmt.Fprintln(os.Stderr, "localplane:", err)
		return 1
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "localplane",
		Short: "Run a Kubernetes control plane with hollow nodes on this machine",
		Long: `localplane runs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
any number of hollow nodes, which are real kubelets with a fake container runtime.
The programs are built from Go modules once and kept in the user's cache.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(
		newUpCommand(), newDownCommand(), newStatusCommand(), newRunCommand(), newBuildCommand(),
		newApplyCommand(), newWaitCommand(), newSuperviseCommand(),
	)
	return command
}

// dirVariable is the environment variable with the folder of the plane for commands run
// by "localplane run".
const dirVariable = "LOCALPLANE_DIR"

// addDirFlag adds --dir.
func addDirFlag(command *cobra.Command, dir *string) {
	def := os.Getenv(dirVariable)
	if def == "" {
		def = userDir()
	}
	command.Flags().StringVar(dir, "dir", def, "folder of the control plane: its data, certificates, kubeconfigs and logs")
}

// userDir returns the default folder of a user's plane. It is empty if the user has no
// cache directory; then a folder must be given.
func userDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "node-authorizer", "localplane")
}
