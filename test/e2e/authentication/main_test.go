package authentication

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
)

// The tests share one cluster whose nodes have AWS roles, and one with RBAC as its only
// authorizer.
var (
	blue *Cluster
	old  *Unrestricted
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, startAll, stopAll)) }

func startAll(ctx context.Context, _ string) error {
	return testmain.StartAll(ctx,
		func(ctx context.Context) (err error) {
			blue, err = Start(ctx, Options{Root: "../../..", Progress: os.Stderr})
			return err
		},
		func(ctx context.Context) (err error) {
			old, err = StartUnrestricted(ctx, Options{Root: "../../..", Progress: os.Stderr})
			return err
		})
}

func stopAll() error {
	var errs []error
	if blue != nil {
		errs = append(errs, blue.Stop())
	}
	if old != nil {
		errs = append(errs, old.Stop())
	}
	return errors.Join(errs...)
}
