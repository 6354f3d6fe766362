package e2e

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/attack"
	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/e2e/webhookcluster"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// The tests share two control planes. Both run the workload of examples/shop and have
// the objects that the attacks are about.
var (
	// shop has the in-tree Node authorizer and NodeRestriction, and the nodes web-1
	// and pay-1.
	shop cluster
	// ours has two replicas of node-authorizer instead, and five nodes.
	ours         cluster
	oursReplicas *webhookcluster.Cluster
)

// cluster is a control plane with its audit log.
type cluster struct {
	*localplane.Plane
	audit   *audit.Log
	fixture *attack.Fixture
}

// nodePools has the nodes of ours with their labels. The in-tree plane has web-1 and
// pay-1 only.
var nodePools = map[string]string{"web-1": "web", "web-2": "web", "pay-1": "payments", "pay-2": "payments", "spare-1": "spare"}

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 14*time.Minute, startClusters, stopClusters)) }

func startClusters(ctx context.Context, dir string) error {
	return testmain.StartAll(ctx,
		func(ctx context.Context) error { return startInTree(ctx, dir+"/in-tree") },
		func(ctx context.Context) error { return startOurs(ctx, dir+"/ours") })
}

func startInTree(ctx context.Context, dir string) error {
	log, err := newAuditLog(dir)
	if err != nil {
		return err
	}
	plane, err := localplane.Start(ctx, localplane.Options{
		Progress: os.Stderr,
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: append(log.APIServerArgs(), "--enable-admission-plugins=NodeRestriction,ExtendedResourceToleration"),
		},
	})
	if err != nil {
		return err
	}
	shop = cluster{Plane: plane, audit: log}
	return shop.populate(ctx, "web-1", "pay-1")
}

func startOurs(ctx context.Context, dir string) error {
	log, err := newAuditLog(dir)
	if err != nil {
		return err
	}
	oursReplicas, err = webhookcluster.Start(ctx, webhookcluster.Options{
		Root:          "../..",
		Replicas:      2,
		Quarantines:   true,
		APIServerArgs: log.APIServerArgs(),
		// A slow machine must not make nodes not ready. The tests check what kubelets report
		// and whether they renew their leases.
		ControllerManagerArgs: []string{"--node-monitor-grace-period=15m"},
		Progress:              os.Stderr,
	})
	if err != nil {
		return err
	}
	ours = cluster{Plane: oursReplicas.Plane, audit: log}
	return ours.populate(ctx, "web-1", "web-2", "pay-1", "pay-2", "spare-1")
}

func newAuditLog(dir string) (*audit.Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return audit.In(dir)
}

func stopClusters() error {
	var errs []error
	if shop.Plane != nil {
		errs = append(errs, shop.Stop())
	}
	if oursReplicas != nil {
		errs = append(errs, oursReplicas.Stop())
	}
	return errors.Join(errs...)
}

// populate adds nodes and workload, and waits until all pods run.
func (c *cluster) populate(ctx context.Context, nodes ...string) error {
	var adding errgroup.Group
	for _, name := range nodes {
		adding.Go(func() error {
			_, err := c.AddNode(ctx, name, localplane.NodeOptions{Labels: map[string]string{"pool": nodePools[name]}})
			return err
		})
	}
	if err := adding.Wait(); err != nil {
		return err
	}
	if err := apply(ctx, c.Plane, "../../examples/shop"); err != nil {
		return err
	}
	if _, err := manifests.WaitForPods(ctx, c.AdminConfig()); err != nil {
		return err
	}
	if err := apply(ctx, c.Plane, "testdata/devices.yaml"); err != nil {
		return err
	}
	var err error
	c.fixture, err = attack.Prepare(ctx, c.Plane)
	return err
}

func apply(ctx context.Context, plane *localplane.Plane, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, plane.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

// node is a node of the cluster.
func (c *cluster) node(t *testing.T, name string) *localplane.Node {
	t.Helper()
	for _, node := range c.Nodes() {
		if node.Name() == name {
			return node
		}
	}
	t.Fatalf("there is no node %s", name)
	return nil
}

// as returns a client with a node's certificate.
func (c *cluster) as(t *testing.T, node string) kubernetes.Interface {
	t.Helper()
	return clientFor(t, c.nodeConfig(t, node))
}

func (c *cluster) nodeConfig(t *testing.T, node string) *rest.Config {
	t.Helper()
	config, err := c.node(t, node).Config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// sender sends attacks with the certificate of web-1.
func (c *cluster) sender(t *testing.T) *attack.Sender {
	t.Helper()
	sender, err := c.fixture.Sender(c.nodeConfig(t, "web-1"), c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

func client(t *testing.T, plane *localplane.Plane) kubernetes.Interface {
	t.Helper()
	return clientFor(t, plane.AdminConfig())
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config.QPS = -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
