// Package testmain runs the tests of a package that share control planes.
package testmain

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Run starts the shared control planes, runs the tests, and stops the planes. It returns
// the exit status. The directory is temporary. The time limit applies to the start. Stop is
// also called after a failed start. The logs of planes stay if a test fails.
func Run(m *testing.M, limit time.Duration, start func(ctx context.Context, dir string) error, stop func() error) int {
	return localplane.KeepLogs(func() int { return run(m, limit, start, stop) })
}

func run(m *testing.M, limit time.Duration, start func(ctx context.Context, dir string) error, stop func() error) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "node-authorizer-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	err = start(ctx, dir)
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// StartAll starts several control planes at the same time. It first builds the programs of
// Kubernetes, which all of them need.
func StartAll(ctx context.Context, starts ...func(context.Context) error) error {
	if _, err := localplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	var group errgroup.Group
	for _, start := range starts {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}
