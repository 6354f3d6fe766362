package machines

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
)

// The tests share two clusters.
var (
	// blue has two replicas.
	blue *Cluster
	// shortLived has one replica, and its certificates are valid for a minute.
	shortLived *Cluster
	// renewing are the booted machines of shortLived, with their first certificates.
	renewing = map[*Machine]certificates{}
	// unready records each time that a node of shortLived was not ready.
	unready *readinessWatch
)

// certificateLife is the validity of certificates of shortLived. It begins five minutes
// before they are issued, so that a kubelet renews one after at most 24 seconds, and some
// at once.
const certificateLife = time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Exit(fakeprovider.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(testmain.Run(m, 14*time.Minute, startClusters, stopClusters))
}

func startClusters(ctx context.Context, _ string) error {
	return testmain.StartAll(ctx, startShortLived, func(ctx context.Context) (err error) {
		blue, err = Start(ctx, Options{Root: "../../..", Replicas: 2, Network: 31, Progress: os.Stderr})
		return err
	})
}

func startShortLived(ctx context.Context) (err error) {
	shortLived, err = Start(ctx, Options{
		Root: "../../..", Replicas: 1, Network: 32, CertificateLife: certificateLife, Progress: os.Stderr,
	})
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

func stopClusters() error {
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
