package machines

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// Name is the name of the cluster, which is a tag of its machines.
const Name = "blue"

// quarantinesRole is the path from deploy/bootstrap of the rights to follow Quarantines.
const quarantinesRole = "../containment/bootstrap/role.yaml"

// ServiceUser is the user of the replicas in the cluster.
const ServiceUser = "system:serviceaccount:kube-system:node-authorizer-bootstrap"

// Options of a cluster.
type Options struct {
	// Root is the folder of the repository.
	Root string
	// Replicas is how many servers run.
	Replicas int
	// Network is the second byte of the addresses of machines, 127.NETWORK.0.1 and so on.
	// Clusters that run at the same time need different ones.
	Network byte
	// CertificateLife is the validity of certificates from kube-controller-manager; zero
	// means its default. It issues them with a start five minutes ago, which counts when
	// a kubelet decides when to renew.
	CertificateLife time.Duration
	// ControllerManagerArgs are more arguments of kube-controller-manager.
	ControllerManagerArgs []string
	// Progress receives a line for each step.
	Progress io.Writer
}

// Cluster is a control plane that machines can join.
type Cluster struct {
	*localplane.Plane
	// Replicas are the servers.
	Replicas []*Replica
	// Cloud has the machines.
	Cloud *fakeaws.Cloud
	// Audit records the requests of nodes and of the servers.
	Audit *audit.Log
	// Client and Ledger have an administrator's rights.
	Client kubernetes.Interface
	Ledger *ledger.Client
	// Program is the path of node-authorizer.
	Program string

	options Options
	dir     string
	// own is the instance on which the servers run.
	own fakeaws.Instance

	mu       sync.Mutex
	machines []*Machine
}

// Start builds the program, and starts the plane and the servers.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "node-authorizer-machines-")
	if err != nil {
		return nil, fmt.Errorf("start a cluster for machines: %w", err)
	}
	c := &Cluster{options: options, dir: dir, Program: filepath.Join(dir, "node-authorizer")}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster for machines: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := server.Build(ctx, c.options.Root, c.Program); err != nil {
		return err
	}
	var err error
	if c.Cloud, err = fakeaws.New(); err != nil {
		return err
	}
	c.own = c.Cloud.Launch(fakeaws.Instance{Profile: c.profile("masters"), Role: "masters", Tags: clusterTag()})
	if c.Audit, err = audit.In(c.dir, ServiceUser); err != nil {
		return err
	}
	if c.Plane, err = localplane.Start(ctx, c.planeOptions()); err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		return err
	}
	if c.Ledger, err = ledger.NewClient(c.AdminConfig()); err != nil {
		return err
	}
	if err := c.install(ctx); err != nil {
		return err
	}
	for i := range c.options.Replicas {
		replica, err := c.AddReplica(ctx, fmt.Sprintf("bootstrap-%d", i+1))
		if err != nil {
			return err
		}
		c.Replicas = append(c.Replicas, replica)
	}
	return nil
}

func (c *Cluster) planeOptions() localplane.Options {
	// Expired tokens are deleted, as in a cluster of kubeadm.
	manager := []string{"--controllers=*,tokencleaner"}
	if life := c.options.CertificateLife; life > 0 {
		manager = append(manager, "--cluster-signing-duration="+life.String())
	}
	manager = append(manager, c.options.ControllerManagerArgs...)
	return localplane.Options{
		WithoutBootstrapRBAC: true,
		VerifyKubelets:       true,
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer:         c.Audit.APIServerArgs(),
			localplane.ControllerManager: manager,
		},
		Progress: c.options.Progress,
	}
}

// install applies the files of deploy/bootstrap for the cluster, without the DaemonSet,
// because there is no node for it, and those with which the servers follow Quarantines.
func (c *Cluster) install(ctx context.Context) error {
	for _, path := range []string{
		"cluster/nodeattestations.yaml", "cluster/machines.yaml", "cluster/role.yaml", "cluster/joining.yaml",
		"policy/policy.yaml", "account.yaml", "approver/bindings.yaml", "registered-machines/rights.yaml",
		"../containment/quarantines.yaml", "../containment/quarantinednodes.yaml", quarantinesRole,
	} {
		objects, err := manifests.Read(filepath.Join(c.deploy(), path))
		if err != nil {
			return err
		}
		if err := manifests.Apply(ctx, c.AdminConfig(), objects, func(*unstructured.Unstructured) {}); err != nil {
			return err
		}
	}
	return await.Until(ctx, "the ledger is served", func(ctx context.Context) error {
		_, err := c.Ledger.List(ctx)
		return err
	})
}

func (c *Cluster) deploy() string { return filepath.Join(c.options.Root, "deploy", "bootstrap") }

// writeCertificates writes the certificates for identity documents.
func (c *Cluster) writeCertificates(path string) error {
	var text strings.Builder
	for _, certificate := range c.Cloud.Certificates() {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(text.String()), 0o600)
}

func (c *Cluster) profile(name string) string {
	return "arn:aws:iam::" + fakeaws.DefaultAccount + ":instance-profile/" + name + "." + Name
}

func clusterTag() map[string]string { return map[string]string{"KubernetesCluster": Name} }

// Entry returns the ledger entry of a machine.
func (c *Cluster) Entry(ctx context.Context, m *Machine) (*v1alpha1.NodeAttestation, error) {
	return c.Ledger.Get(ctx, m.EntryName())
}

// Stop stops everything.
func (c *Cluster) Stop() error {
	var errs []error
	if c.Plane != nil {
		errs = append(errs, c.Plane.Stop())
	}
	for _, replica := range c.Replicas {
		errs = append(errs, replica.APIProxy.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, machine := range c.machines {
		errs = append(errs, machine.proxy.Close())
	}
	if c.Cloud != nil {
		c.Cloud.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
