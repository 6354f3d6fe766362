package containment

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// pageSize is the number of objects in a page, which is in memory as a whole. An object may have 1.5 MB.
const pageSize = 100

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
	scheme, gv := runtime.NewScheme(), v1alpha1.GroupVersion()
	for _, kind := range []string{v1alpha1.NodeScopeKind, v1alpha1.QuarantineKind} {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), &object{})
		scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), &list{})
	}
	metav1.AddToGroupVersion(scheme, gv)
	config = rest.CopyConfig(config)
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

// list reads all objects, page by page. Of objects that are out of bounds it drops the specs.
func (c *client) list(ctx context.Context, opts metav1.ListOptions) (*list, error) {
	all, added := &list{}, 0
	for opts.Limit = pageSize; ; {
		var page list
		err := c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Do(ctx).Into(&page)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			added += len(o.spec)
		}
		all.ResourceVersion, all.Items = page.ResourceVersion, append(all.Items, page.Items...)
		if added > maxSpecs {
			all.Items, added = bounded(all.Items), 0
		}
		if page.Continue == "" {
			return all, nil
		}
		opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = page.Continue, "", ""
	}
}

func (c *client) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Watch(ctx)
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
