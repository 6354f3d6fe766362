// Package cli implements the command line of node-authorizer. Under the name
// kubectl-node_authorizer it is a plugin of kubectl. Each command has a file; the table of
// commands is in this one.
//
// Results go to stdout, progress and warnings to stderr. The exit status is 0 for allowed or
// without findings, 1 for denied or with findings, and 2 for usage errors and for questions
// that could not be decided.
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

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// commands returns the constructors of all commands.
func commands() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{
		newCanI, newExplain, newReach, newAttackPaths, newDiff, newWhoCan,
		newReview, newAudit, newScope, newDoctor, newSnapshot, newServer, newClient, newToken,
		newRevoke, newQuarantine, newRelease,
		newConfig, newCompletion, newVersion,
	}
}

// Main runs the command line args[1:] and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// The libraries log messages that repeat the errors.
	klog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	a := &app{streams: newStreams(stdin, stdout, stderr)}
	root := a.root(programName(args))
	root.SetArgs(doubleDashes(root, args[1:]))
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return a.status
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	a.failure("%v", err)
	if usage := new(usageError); errors.As(err, &usage) {
		fmt.Fprintf(stderr, "See '%s --help'.\n", command.CommandPath())
	}
	return statusUndecided
}

// Root returns all commands, for who describes them.
func Root() *cobra.Command {
	a := &app{streams: newStreams(strings.NewReader(""), io.Discard, io.Discard)}
	return a.root(binaryName)
}

func (a *app) root(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   binaryName,
		Short: "Show what a Kubernetes node may do, and why",
		Long: `node-authorizer says what a Kubernetes node may do, and why.

It decides as the Node authorizer of kube-apiserver does, from the state of a
cluster or from files (--from): which objects a node is related to through the
pods bound to it, and what the rules allow it to do with them.

Exit status: 0 allowed, 1 denied, 2 could not decide or bad usage.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Version:       currentVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: checkFlagValues,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.SetUsageFunc(a.usage)
	root.SetHelpFunc(a.help)
	root.SetHelpCommand(newHelp(root))
	root.SetFlagErrorFunc(flagError)
	for _, newCommand := range commands() {
		root.AddCommand(newCommand(a))
	}
	a.invoked = asInvoked(name, root)
	return root
}
