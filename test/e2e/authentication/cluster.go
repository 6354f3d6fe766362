package authentication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

const (
	// ClusterID is the ID of the cluster in tokens.
	ClusterID = "blue"
	// Region is the region of the instances.
	Region = "eu-west-1"
	// grace is how long a node may be silent before it becomes not ready.
	grace = 10 * time.Second
)

// Options of a cluster.
type Options struct {
	// Root is the folder of the repository.
	Root string
	// IAM are additional lines of the section iam of the server's config file.
	IAM string
	// Progress receives a line for each step.
	Progress io.Writer
}

// Cluster is a control plane whose API server authenticates nodes by their AWS roles.
type Cluster struct {
	*localplane.Plane
	// Cloud has the machines, and Front is the TLS proxy before it.
	Cloud *fakeaws.Cloud
	Front *fakeaws.Front
	// Client has an administrator's rights.
	Client kubernetes.Interface
	// Program is the path of node-authorizer.
	Program string
	// Authenticator is the server that authenticates for kube-apiserver.
	Authenticator *server.Server

	options Options
	dir     string
	// approver approves the kubelets' requests for serving certificates.
	approver *approver
	nodes    int
}

// Start builds the program, and starts the plane and the server.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "node-authorizer-authentication-")
	if err != nil {
		return nil, fmt.Errorf("start a cluster that authenticates AWS roles: %w", err)
	}
	c := &Cluster{options: options, dir: dir, Program: filepath.Join(dir, "node-authorizer")}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster that authenticates AWS roles: %w", err), c.Stop())
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
	if c.Front, err = c.Cloud.Front(c.dir); err != nil {
		return err
	}
	c.Plane, err = localplane.Start(ctx, localplane.Options{
		VerifyKubelets: true,
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: {
				"--authentication-token-webhook-config-file=" + c.webhookKubeconfig(),
				"--authentication-token-webhook-version=v1",
				// Edits of mappings must take effect at once.
				"--authentication-token-webhook-cache-ttl=0s",
			},
			localplane.ControllerManager: {"--node-monitor-grace-period=" + grace.String(), "--node-monitor-period=1s"},
		},
		Prepare:     func(p *localplane.Plane) error { return c.prepare(p) },
		OnAPIServer: c.serve,
		Progress:    c.options.Progress,
	})
	if err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		return err
	}
	c.approver = approve(c.Client)
	return nil
}

// prepare writes the files that kube-apiserver reads when it starts.
func (c *Cluster) prepare(p *localplane.Plane) (err error) {
	if c.Authenticator, err = c.newServer(p); err != nil {
		return err
	}
	return c.writeWebhook(p)
}

// serve applies the manifests that users apply, and starts the server.
func (c *Cluster) serve(ctx context.Context, p *localplane.Plane) error {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return err
	}
	err = await.Until(ctx, "there is the namespace of a role", func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range []string{
		"iam/rbac/role.yaml", "containment/quarantines.yaml", "containment/quarantinednodes.yaml", "containment/role.yaml",
	} {
		objects, err := manifests.Read(filepath.Join(c.options.Root, "deploy", path))
		if err != nil {
			return err
		}
		if err := manifests.Apply(ctx, p.AdminConfig(), objects, func(*unstructured.Unstructured) {}); err != nil {
			return err
		}
	}
	return c.run(ctx, p)
}

func (c *Cluster) webhookKubeconfig() string { return filepath.Join(c.dir, "token-webhook.kubeconfig") }

// Stop stops everything.
func (c *Cluster) Stop() error {
	var errs []error
	if c.approver != nil {
		errs = append(errs, c.approver.stop())
	}
	if c.Plane != nil {
		errs = append(errs, c.Plane.Stop())
	}
	if c.Cloud != nil {
		c.Cloud.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// Map replaces the ConfigMap kube-system/aws-auth.
func (c *Cluster) Map(ctx context.Context, data map[string]string) error {
	configMaps := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth", Namespace: metav1.NamespaceSystem}, Data: data}
	_, err := configMaps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write aws-auth: %w", err)
	}
	return nil
}

// Unmap deletes the ConfigMap.
func (c *Cluster) Unmap(ctx context.Context) error {
	return c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, "aws-auth", metav1.DeleteOptions{})
}
