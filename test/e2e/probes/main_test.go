package probes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// The tests share four API servers: one as kubeadm configures it, one that emulates 1.34 with the
// feature gates that restrict nodes less, one without the Node authorizer and NodeRestriction, and one
// with node-authorizer's server in their place.
var standard, gates, rbacOnly, ours *world

// healthOnly lets callers without a credential read the version and the health, and nothing else.
const healthOnly = `apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /version}, {path: /healthz}]}
`

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, startAll, stopAll)) }

func startAll(ctx context.Context, dir string) error {
	authentication := filepath.Join(dir, "authentication.yaml")
	if err := os.WriteFile(authentication, []byte(healthOnly), 0o600); err != nil {
		return err
	}
	return testmain.StartAll(ctx,
		func(ctx context.Context) (err error) {
			standard, err = start(ctx, filepath.Join(dir, "standard"), localplane.InTree)
			return err
		},
		func(ctx context.Context) (err error) {
			gates, err = start(ctx, filepath.Join(dir, "gates"), localplane.InTree, "--emulated-version=1.34", "--anonymous-auth=false",
				"--feature-gates=ServiceAccountNodeAudienceRestriction=false,AllowInsecureKubeletCertificateSigningRequests=true")
			return err
		},
		func(ctx context.Context) (err error) {
			rbacOnly, err = start(ctx, filepath.Join(dir, "rbac"), localplane.RBACOnly, "--authentication-config="+authentication)
			return err
		},
		func(ctx context.Context) (err error) {
			ours, err = startOurs(ctx, filepath.Join(dir, "ours"))
			return err
		})
}

func stopAll() error {
	var errs []error
	for _, w := range []*world{standard, gates, rbacOnly, ours} {
		if w != nil {
			errs = append(errs, w.stop())
		}
	}
	return errors.Join(errs...)
}
