package authentication

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// The tests share one cluster whose nodes have AWS roles, and one whose nodes are
// authorized by RBAC alone.
var (
	blue *Cluster
	old  *Unrestricted
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	err := open(ctx)
	defer func() {
		if err := closeAll(); err != nil {
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

func open(ctx context.Context) error {
	// Both planes need the programs; one of them builds what is missing.
	if _, err := localplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() (err error) {
		blue, err = Start(ctx, Options{Root: "../../..", Progress: os.Stderr})
		return err
	})
	both.Go(func() (err error) {
		old, err = StartUnrestricted(ctx, Options{Root: "../../..", Progress: os.Stderr})
		return err
	})
	return both.Wait()
}

func closeAll() error {
	var errs []error
	if blue != nil {
		errs = append(errs, blue.Stop())
	}
	if old != nil {
		errs = append(errs, old.Stop())
	}
	return errors.Join(errs...)
}
