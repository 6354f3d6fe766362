package webhookcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// Options are the settings of a cluster.
type Options struct {
	// Root is the folder of the repository.
	Root string
	// Replicas is the number of servers.
	Replicas int
	// Quarantines makes the servers follow NodeScopes and Quarantines, and kube-apiserver send
	// them also the requests with tokens that are bound to a node.
	Quarantines bool
	// APIServerArgs are appended to the arguments of kube-apiserver.
	APIServerArgs []string
	// ControllerManagerArgs are appended to the arguments of kube-controller-manager.
	ControllerManagerArgs []string
	// Progress receives a line for each step.
	Progress io.Writer
}

// Cluster is a control plane with the servers that authorize its nodes.
type Cluster struct {
	*localplane.Plane
	// Replicas are the servers.
	Replicas []*Replica
	// Webhooks is the proxy between kube-apiserver and the servers.
	Webhooks *faultproxy.Proxy

	root, dir   string
	quarantines bool
}

// Start builds the server, and starts the plane and the servers.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "node-authorizer-webhooks-")
	if err != nil {
		return nil, fmt.Errorf("start a cluster with webhooks: %w", err)
	}
	c := &Cluster{root: options.Root, dir: dir, quarantines: options.Quarantines}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster with webhooks: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	program := filepath.Join(c.dir, "node-authorizer")
	if err := server.Build(ctx, options.Root, program); err != nil {
		return err
	}
	var err error
	c.Plane, err = localplane.Start(ctx, localplane.Options{
		AuthorizationConfig: filepath.Join(c.apiServerDir(), "authorization.yaml"),
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: append(
				[]string{"--admission-control-config-file=" + filepath.Join(c.apiServerDir(), "admission.yaml")},
				options.APIServerArgs...),
			localplane.ControllerManager: options.ControllerManagerArgs,
		},
		Prepare:     func(p *localplane.Plane) error { return c.prepare(p, options.Replicas) },
		OnAPIServer: func(ctx context.Context, p *localplane.Plane) error { return c.serve(ctx, p, program) },
		Progress:    options.Progress,
	})
	return err
}

// prepare chooses the addresses and writes the files that kube-apiserver reads when it
// starts.
func (c *Cluster) prepare(p *localplane.Plane, replicas int) error {
	var addresses []string
	for i := range replicas {
		replica, err := newReplica(p, fmt.Sprintf("node-authorizer-%d", i+1), c.dir)
		if err != nil {
			return err
		}
		c.Replicas = append(c.Replicas, replica)
		addresses = append(addresses, replica.Address)
	}
	var err error
	if c.Webhooks, err = faultproxy.Listen(addresses...); err != nil {
		return err
	}
	return c.writeAPIServerFiles(p)
}

// serve starts the servers and then applies the webhook configurations, in the documented
// order.
func (c *Cluster) serve(ctx context.Context, p *localplane.Plane, program string) error {
	paths := []string{"rbac/role.yaml", "static-pod/rbac.yaml"}
	if c.quarantines {
		paths = append(paths, "containment/nodescopes.yaml", "containment/quarantines.yaml", "containment/quarantinednodes.yaml",
			"containment/role.yaml")
		if err := defaultNamespace(ctx, p); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := apply(ctx, p, filepath.Join(c.root, "deploy", path)); err != nil {
			return err
		}
	}
	for _, replica := range c.Replicas {
		if err := replica.writeFiles(c, p); err != nil {
			return err
		}
		if err := replica.Run(ctx, server.Command{Program: program}); err != nil {
			return err
		}
	}
	if err := c.writeWebhooks(p); err != nil {
		return err
	}
	return apply(ctx, p, c.webhooksDir())
}

// defaultNamespace waits for the namespace of a role in deploy/containment.
func defaultNamespace(ctx context.Context, p *localplane.Plane) error {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return err
	}
	return await.Until(ctx, "there is the namespace default", func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

func apply(ctx context.Context, p *localplane.Plane, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, p.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

func (c *Cluster) apiServerDir() string { return filepath.Join(c.dir, "apiserver") }
func (c *Cluster) webhooksDir() string  { return filepath.Join(c.dir, "webhooks") }

// Stop stops everything.
func (c *Cluster) Stop() error {
	var errs []error
	if c.Plane != nil {
		errs = append(errs, c.Plane.Stop())
	}
	for _, replica := range c.Replicas {
		errs = append(errs, replica.Watches.Close())
	}
	if c.Webhooks != nil {
		errs = append(errs, c.Webhooks.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// hostOf returns the host:port of an https address.
func hostOf(server string) string { return strings.TrimPrefix(server, "https://") }
