package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// shop is a control plane with the in-tree Node authorizer, on which the
// workload of examples/shop runs on two nodes. The tests share it.
var shop *localplane.Plane

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute)
	defer cancel()
	plane, err := localplane.Start(ctx, localplane.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := openShop(ctx, plane); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shop = plane
	return m.Run()
}

func openShop(ctx context.Context, plane *localplane.Plane) error {
	for name, pool := range map[string]string{"web-1": "web", "pay-1": "payments"} {
		if _, err := plane.AddNode(ctx, name, localplane.NodeOptions{Labels: map[string]string{"pool": pool}}); err != nil {
			return err
		}
	}
	if err := apply(ctx, plane, "../../examples/shop"); err != nil {
		return err
	}
	if _, err := manifests.WaitForPods(ctx, plane.AdminConfig()); err != nil {
		return err
	}
	return apply(ctx, plane, "testdata/devices.yaml")
}

func apply(ctx context.Context, plane *localplane.Plane, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, plane.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

func client(t *testing.T, plane *localplane.Plane) kubernetes.Interface {
	t.Helper()
	config := plane.AdminConfig()
	config.QPS = -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
