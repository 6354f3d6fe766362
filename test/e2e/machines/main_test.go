package machines

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

// The tests share two clusters.
var (
	// blue has two replicas.
	blue *Cluster
	// shortLived has one, and its certificates are good for a minute.
	shortLived *Cluster
	// renewing are the machines of shortLived, which have booted, with the first
	// certificates of each.
	renewing = map[*Machine]certificates{}
	// unready notes each time that a node of shortLived was not ready.
	unready *readinessWatch
)

// certificateLife is how long certificates of shortLived are good for. They are
// valid from five minutes before they are made, so that a kubelet renews one when
// it is 24 seconds old at the latest, and some at once.
const certificateLife = time.Minute

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute)
	defer cancel()
	err := openClusters(ctx)
	defer func() {
		if err := closeClusters(); err != nil {
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

func openClusters(ctx context.Context) error {
	// Both planes need the programs; one of them builds what is missing.
	if _, err := localplane.Build(ctx, os.Stderr); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() (err error) {
		blue, err = Start(ctx, Options{Root: "../../..", Replicas: 2, Network: 31, Progress: os.Stderr})
		return err
	})
	both.Go(func() error { return openShortLived(ctx) })
	return both.Wait()
}

func openShortLived(ctx context.Context) (err error) {
	shortLived, err = Start(ctx, Options{Root: "../../..", Replicas: 1, Network: 32, CertificateLife: certificateLife, Progress: os.Stderr})
	if err != nil {
		return err
	}
	for range 2 {
		machine, err := shortLived.Launch()
		if err != nil {
			return err
		}
		if err := machine.Boot(ctx); err != nil {
			return err
		}
		if renewing[machine], err = firstCertificates(ctx, machine); err != nil {
			return err
		}
	}
	unready = watchNodes(shortLived)
	return nil
}

func closeClusters() error {
	var errs []error
	if unready != nil {
		unready.end()
	}
	for _, cluster := range []*Cluster{blue, shortLived} {
		if cluster != nil {
			errs = append(errs, cluster.Stop())
		}
	}
	return errors.Join(errs...)
}
