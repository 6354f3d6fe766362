// Package ledger keeps the NodeAttestations of a cluster: which machine was
// given which node name, and which bootstrap token.
//
// Make a [Client] of the cluster and give it to package bootstrap. [NewCache] follows what
// it reads.
//
// The ledger is the custom resource in the API server, and nothing else; a
// [Client] reads and writes it, a [Cache] follows it. Next to each entry is the
// Secret of its token, which a [TokenKey] makes and which nobody here reads.
package ledger

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// Client reads and writes entries. Errors are those of the API server, wrapped.
type Client struct {
	entries *gentype.ClientWithList[*v1alpha1.NodeAttestation, *v1alpha1.NodeAttestationList]
}

// NewClient returns a client of a cluster. If the config sets no limit of
// requests of its own, there is none but the API server's.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the ledger's types: %w", err)
	}
	config = rest.CopyConfig(config)
	gv := v1alpha1.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if config.QPS == 0 {
		config.QPS = -1
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return &Client{gentype.NewClientWithList(
		v1alpha1.Resource, client, runtime.NewParameterCodec(scheme), "",
		func() *v1alpha1.NodeAttestation { return &v1alpha1.NodeAttestation{} },
		func() *v1alpha1.NodeAttestationList { return &v1alpha1.NodeAttestationList{} },
	)}, nil
}

// Get reads an entry from the API server.
func (c *Client) Get(ctx context.Context, name string) (*v1alpha1.NodeAttestation, error) {
	entry, err := c.entries.Get(ctx, name, metav1.GetOptions{})
	return done(entry, err, "read", name)
}

// Create writes a new entry. Its status is not written.
func (c *Client) Create(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	created, err := c.entries.Create(ctx, entry, metav1.CreateOptions{})
	return done(created, err, "create", entry.Name)
}

// Update writes an entry's spec and metadata. If it has a resource version, the
// API server refuses what was changed since.
func (c *Client) Update(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	updated, err := c.entries.Update(ctx, entry, metav1.UpdateOptions{})
	return done(updated, err, "update", entry.Name)
}

// UpdateStatus writes an entry's status alone, as Update does.
func (c *Client) UpdateStatus(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	updated, err := c.entries.UpdateStatus(ctx, entry, metav1.UpdateOptions{})
	return done(updated, err, "update the status of", entry.Name)
}

// Delete removes an entry, if the preconditions hold; they may be nil.
func (c *Client) Delete(ctx context.Context, name string, preconditions *metav1.Preconditions) error {
	err := c.entries.Delete(ctx, name, metav1.DeleteOptions{Preconditions: preconditions})
	_, err = done(nil, err, "delete", name)
	return err
}

// List reads the whole ledger.
func (c *Client) List(ctx context.Context) (*v1alpha1.NodeAttestationList, error) {
	list, err := c.entries.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", v1alpha1.Resource, err)
	}
	return list, nil
}

func (c *Client) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return c.entries.List(ctx, opts)
}

func (c *Client) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return c.entries.Watch(ctx, opts)
}

func done(entry *v1alpha1.NodeAttestation, err error, doing, name string) (*v1alpha1.NodeAttestation, error) {
	if err != nil {
		return nil, fmt.Errorf("%s nodeattestation %s: %w", doing, name, err)
	}
	return entry, nil
}
