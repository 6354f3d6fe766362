package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	statusAllowed   = 0
	statusDenied    = 1
	statusUndecided = 2
)

// The answers to a question.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
)

// app is one run of the command line.
type app struct {
	streams
	// status is the exit status of a command that returns no error.
	status int
}

// usageError is an error in the command line itself.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noCommand accepts no arguments: an argument that is not a command is a usage error.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	known := make([]string, 0, len(cmd.Commands()))
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return usagef("unknown command %q%s", args[0], didYouMean(args[0], known))
}

// atLeastOne accepts arguments. Its error says which are missing.
func atLeastOne(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s", missing)
		}
		return nil
	}
}

// exactly accepts one argument per name. Its errors use the names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("%s is missing", strings.Join(names[len(args):], " "))
		}
		if len(args) > len(names) {
			return usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}
