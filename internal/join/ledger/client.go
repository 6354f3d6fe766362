// Package ledger stores the NodeAttestations of a cluster: which machine was given which
// node name and which bootstrap token.
//
// Create a [Client] of the cluster and pass it to package bootstrap. [NewCache] returns a
// cache of the entries.
//
// The ledger consists only of the custom resources in the API server. A [Client] reads and
// writes them, a [Cache] watches them. Each entry has a Secret with its token. A [TokenKey]
// derives the token; no code here reads the Secret.
package ledger

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// Client reads and writes entries. It returns the errors of the API server, wrapped.
type Client struct {
	entries *gentype.ClientWithList[*v1alpha1.NodeAttestation, *v1alpha1.NodeAttestationList]
}

// REST returns a client of the group of the ledger, and its codec of parameters. If the config has no rate limit, only the
// limit of the API server applies.
func REST(config *rest.Config) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the types of %s: %w", v1alpha1.Group, err)
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
		return nil, nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}

// NewClient returns a client of a cluster, with the rate limit of [REST].
func NewClient(config *rest.Config) (*Client, error) {
	client, parameters, err := REST(config)
	if err != nil {
		return nil, err
	}
	return &Client{gentype.NewClientWithList(
		v1alpha1.Resource, client, parameters, "",
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

// Update writes the spec and the metadata of an entry. If the entry has a resource version
// that is not the latest, the API server refuses the update.
func (c *Client) Update(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	updated, err := c.entries.Update(ctx, entry, metav1.UpdateOptions{})
	return done(updated, err, "update", entry.Name)
}

// UpdateStatus writes the status of an entry, under the same condition as Update.
func (c *Client) UpdateStatus(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	updated, err := c.entries.UpdateStatus(ctx, entry, metav1.UpdateOptions{})
	return done(updated, err, "update the status of", entry.Name)
}

// Delete removes an entry if the preconditions hold; they may be nil.
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

func done(entry *v1alpha1.NodeAttestation, err error, doing, name string) (*v1alpha1.NodeAttestation, error) {
	if err != nil {
		return nil, fmt.Errorf("%s nodeattestation %s: %w", doing, name, err)
	}
	return entry, nil
}
