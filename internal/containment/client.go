package containment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// pageSize is the number of objects in a page. It limits what the API server has to hold; here a
// page is read object by object.
const pageSize = 500

// writeTimeout is the time limit of a write.
const writeTimeout = 10 * time.Second

// client reads one resource, and writes its status.
type client struct {
	rest           rest.Interface
	parameters     runtime.ParameterCodec
	resource, kind string
}

// newREST returns a client for the group. Only the API server limits its requests.
func newREST(config *rest.Config) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the types of %s: %w", v1alpha1.Group, err)
	}
	config = rest.CopyConfig(config)
	gv := v1alpha1.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}

// list reads all objects, page by page. A page that is too old begins the list again, once.
func (c *client) list(ctx context.Context, opts metav1.ListOptions) (*list, error) {
	read, err := c.pages(ctx, opts)
	if errors.Is(err, errPageExpired) {
		read, err = c.pages(ctx, opts)
	}
	return read, err
}

var errPageExpired = errors.New("the list took too long, and the API server forgot where it ended")

func (c *client) pages(ctx context.Context, opts metav1.ListOptions) (*list, error) {
	opts.Limit, opts.Continue = pageSize, ""
	into := newKept()
	for {
		meta, err := c.page(ctx, opts, into.put)
		switch {
		case err != nil && opts.Continue != "" && apierrors.IsResourceExpired(err):
			return nil, fmt.Errorf("%w: %w", errPageExpired, err)
		case err != nil:
			return nil, err
		case meta.Continue == "":
			return &list{ListMeta: metav1.ListMeta{ResourceVersion: meta.ResourceVersion}, Items: into.all()}, nil
		}
		opts.Continue = meta.Continue
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
}

func (c *client) page(ctx context.Context, opts metav1.ListOptions, see func(*object)) (metav1.ListMeta, error) {
	body, err := c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	meta, err := readPage(body, see)
	if err != nil {
		return meta, fmt.Errorf("read a list of %s: %w", c.resource, err)
	}
	return meta, nil
}

func (c *client) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	body, err := c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return newWatcher(body), nil
}

// get reads one object.
func (c *client) get(ctx context.Context, name string) (*object, error) {
	text, err := c.rest.Get().Resource(c.resource).Name(name).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", c.resource, name, err)
	}
	return decodeObject(text)
}

// statusUpdate is an object of which only the status is sent: an API server takes nothing else
// from an update of a status.
type statusUpdate struct {
	Kind       string                   `json:"kind"`
	APIVersion string                   `json:"apiVersion"`
	Metadata   statusOf                 `json:"metadata"`
	Status     v1alpha1.NodeScopeStatus `json:"status"`
}

// statusOf makes the API server refuse the update if the object has changed.
type statusOf struct {
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// writeStatus writes the status of the version of the object that was read.
func (c *client) writeStatus(ctx context.Context, of *object, to status) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	body, err := json.Marshal(&statusUpdate{
		Kind: c.kind, APIVersion: v1alpha1.GroupVersion().String(),
		Metadata: statusOf{of.Name, string(of.UID), of.ResourceVersion},
		Status: v1alpha1.NodeScopeStatus{
			ObservedGeneration: to.observed, Conditions: []metav1.Condition{to.condition},
		},
	}, asKubernetes())
	if err == nil {
		err = c.rest.Put().Resource(c.resource).Name(of.Name).SubResource("status").Body(body).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", c.resource, of.Name, err)
	}
	return nil
}
