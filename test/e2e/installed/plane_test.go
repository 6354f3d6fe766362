package installed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

const (
	root        = "../../.."
	manifestDir = root + "/deploy/bootstrap"
	account     = "node-authorizer-bootstrap"
	accountUser = "system:serviceaccount:" + metav1.NamespaceSystem + ":" + account
)

// files are the files that `kubectl apply -k deploy/bootstrap` applies, except for the
// config.
var files = []string{
	"cluster/nodeattestations.yaml", "cluster/machines.yaml", "cluster/role.yaml", "cluster/joining.yaml",
	"policy/policy.yaml", "account.yaml", "approver/bindings.yaml", "daemonset.yaml",
}

// containmentFiles are the files that `kubectl apply -k deploy/containment` applies.
var containmentFiles = []string{
	"../containment/nodescopes.yaml", "../containment/quarantines.yaml", "../containment/quarantinednodes.yaml", "../containment/role.yaml",
}

// plane is shared by the tests. It has no nodes and no approver.
var plane *localplane.Plane

// audited is the audit log of the service account.
var audited *audit.Log

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, install, stop)) }

func stop() error {
	if plane == nil {
		return nil
	}
	return plane.Stop()
}

func install(ctx context.Context, dir string) error {
	var err error
	if audited, err = audit.In(dir, accountUser); err != nil {
		return err
	}
	plane, err = localplane.Start(ctx, localplane.Options{
		Progress:             os.Stderr,
		WithoutBootstrapRBAC: true,
		ExtraArgs:            map[localplane.Component][]string{localplane.APIServer: audited.APIServerArgs()},
	})
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(files, containmentFiles) {
		if err := apply(ctx, dir, file); err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
	}
	return policyIsEnforced(ctx)
}

// apply applies a file as it is but for the image.
func apply(ctx context.Context, dir, file string) error {
	text, err := os.ReadFile(filepath.Join(manifestDir, file))
	if err != nil {
		return err
	}
	filled := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(filled, []byte(strings.ReplaceAll(string(text), "IMAGE", "registry.example.com/node-authorizer:v1")),
		0o600); err != nil {
		return err
	}
	objects, err := manifests.Read(filled)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, plane.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

// policyIsEnforced waits until the API server, which learns of its policies
// through a watch, refuses what the policy does.
func policyIsEnforced(ctx context.Context) error {
	config, err := serviceConfig(ctx)
	if err != nil {
		return err
	}
	service, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := service.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, stolenAccount(),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
	})
}

// serviceConfig is how the service account reaches the API server from a pod.
func serviceConfig(ctx context.Context) (*rest.Config, error) {
	admin, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	token, err := admin.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, account, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make a token of the service account: %w", err)
	}
	config := rest.AnonymousClientConfig(plane.AdminConfig())
	config.QPS = -1
	config.BearerToken = token.Status.Token
	return config, nil
}

// service is a client with the rights of the service account, and admin one that
// has all.
func clients(t *testing.T) (service, admin kubernetes.Interface) {
	t.Helper()
	config, err := serviceConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, config), clientFor(t, plane.AdminConfig())
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
