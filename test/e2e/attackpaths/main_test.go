package attackpaths

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
)

// The tests share a control plane of the newest minor, and one that emulates 1.34.
var newest, emulated *world

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, startAll, stopAll)) }

func startAll(ctx context.Context, _ string) error {
	return testmain.StartAll(ctx,
		func(ctx context.Context) (err error) {
			newest, err = startWorld(ctx)
			return err
		},
		func(ctx context.Context) (err error) {
			emulated, err = startEmulated(ctx, 34)
			return err
		})
}

func stopAll() error {
	var errs []error
	for _, w := range []*world{newest, emulated} {
		if w != nil {
			errs = append(errs, w.Stop())
		}
	}
	return errors.Join(errs...)
}
