package attackpaths

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
)

// The tests share a control plane of the newest minor, one that emulates 1.34, and one that asks about
// NodeScopes.
var newest, emulated, scoped *world

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, startAll, stopAll)) }

func startAll(ctx context.Context, dir string) error {
	return testmain.StartAll(ctx,
		func(ctx context.Context) (err error) {
			newest, err = startWorld(ctx)
			return err
		},
		func(ctx context.Context) (err error) {
			emulated, err = startEmulated(ctx, 34)
			return err
		},
		func(ctx context.Context) (err error) {
			scoped, err = startScoped(ctx, dir)
			return err
		})
}

func stopAll() error {
	var errs []error
	for _, w := range []*world{newest, emulated, scoped} {
		if w != nil {
			errs = append(errs, w.Stop())
		}
	}
	return errors.Join(errs...)
}
