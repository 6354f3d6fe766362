// Package cli implements the command line of node-authorizer. Under the name
// kubectl-node_authorizer it is a plugin of kubectl. Groups of commands are packages below; the
// table of commands is in this file.
//
// Results go to stdout, progress and warnings to stderr. The exit status is 0 for allowed or
// without findings, 1 for denied or with findings, and 2 for usage errors and for questions
// that could not be decided; 130 after an interrupt.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/node-authorizer/node-authorizer/internal/cli/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/audit"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/contain"
	"github.com/node-authorizer/node-authorizer/internal/cli/doctor"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
	"github.com/node-authorizer/node-authorizer/internal/cli/query"
	"github.com/node-authorizer/node-authorizer/internal/cli/serve"
	"github.com/node-authorizer/node-authorizer/internal/cli/setup"
)

func commands() []func(*command.App) *cobra.Command {
	return []func(*command.App) *cobra.Command{
		query.NewCanI, query.NewExplain, query.NewExplainCode, query.NewReach, paths.NewAttackPaths, paths.NewDiff, query.NewWhoCan,
		query.NewReview, audit.NewAudit, contain.NewScope, doctor.NewDoctor, query.NewSnapshot,
		setup.NewSetup, serve.NewServer, serve.NewClient, attest.NewAttest, serve.NewToken,
		contain.NewApprove, contain.NewRevoke, contain.NewQuarantine, contain.NewRelease,
		serve.NewConfig, newCompletion, command.NewVersion,
	}
}

// Main runs the command line args[1:] and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runAt(time.Now, args, stdin, stdout, stderr)
}

// runAt runs the command line with a clock.
func runAt(now func() time.Time, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// The libraries log messages that repeat the errors.
	klog.SetLogger(logr.Discard())

	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, stopTerminated := signal.NotifyContext(interrupted, syscall.SIGTERM)
	defer stopTerminated()
	context.AfterFunc(interrupted, stop) // a second signal of the same kind ends the process at once
	context.AfterFunc(ctx, stopTerminated)
	execute := func(ctx context.Context, a *command.App) (*cobra.Command, error) {
		root := root(a, programName(args))
		root.SetArgs(doubleDashes(root, args[1:]))
		return root.ExecuteContextC(ctx)
	}
	a := command.NewApp(command.NewStreams(stdin, stdout, stderr), append([]string{binaryName}, args[1:]...), now)
	a.Execute = func(ctx context.Context, a *command.App) error {
		_, err := execute(ctx, a)
		return err
	}
	found, err := execute(ctx, a)
	if err == nil {
		return a.Status
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	a.Failure("%v", err)
	if interrupted.Err() != nil {
		return command.StatusInterrupted
	}
	if usage := new(command.UsageError); errors.As(err, &usage) {
		fmt.Fprintf(stderr, "See '%s --help'.\n", found.CommandPath())
	}
	return command.StatusUndecided
}

// Root returns all commands, for who describes them.
func Root() *cobra.Command {
	a := command.NewApp(command.NewStreams(strings.NewReader(""), io.Discard, io.Discard), []string{binaryName}, time.Now)
	return root(a, binaryName)
}

func root(a *command.App, name string) *cobra.Command {
	root := &cobra.Command{
		Use:   binaryName,
		Short: "Show what a Kubernetes node may do, and why",
		Long: `node-authorizer says what a Kubernetes node may do, and why.

It decides as the Node authorizer of kube-apiserver does, from the state of a cluster or
from files (--from): which objects a node is related to through the pods bound to it, and
what the rules allow it to do with them.

Exit status: 0 allowed, 1 denied, 2 could not decide or bad usage,
130 interrupted.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Version:       command.CurrentVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          command.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: command.CheckFlagValues,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	root.SetUsageFunc(a.Usage)
	root.SetHelpFunc(a.Help)
	root.SetHelpCommand(command.NewHelp(root))
	root.SetFlagErrorFunc(command.FlagError)
	for _, newCommand := range commands() {
		cmd := newCommand(a)
		withoutArguments(cmd)
		root.AddCommand(cmd)
	}
	a.Invoked = asInvoked(name, root)
	return root
}

// withoutArguments lets a command, and those below it, take no arguments unless it says which.
func withoutArguments(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args, cmd.ValidArgsFunction = command.Exactly(), cobra.NoFileCompletions
	}
	for _, below := range cmd.Commands() {
		withoutArguments(below)
	}
}
