package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// client reads the kept kinds from an API server.
type client struct {
	host      string
	config    *rest.Config
	http      *http.Client
	scheme    *runtime.Scheme
	codecs    serializer.CodecFactory
	params    runtime.ParameterCodec
	discovery *discovery.DiscoveryClient
}

func newClient(cfg *rest.Config) (*client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if cfg.QPS == 0 {
		cfg.QPS = -1 // pages are requested one after the other; the server has its own limits
	}
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandler = rest.NoWarnings{} // deprecated versions are read intentionally
	}
	c := &client{host: cfg.Host, config: cfg, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, corev1.AddToScheme, nodev1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
		resourcev1.AddToScheme, resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme,
		certificatesv1.AddToScheme, certificatesv1beta1.AddToScheme, policyv1alpha1.AddToScheme,
		addAPIServices,
	} {
		if err := add(c.scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	metav1.AddToGroupVersion(c.scheme, schema.GroupVersion{Version: "v1"})
	c.codecs = serializer.NewCodecFactory(c.scheme)
	c.params = runtime.NewParameterCodec(c.scheme)
	var err error
	if c.http, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cfg.Host, err)
	}
	forDiscovery := *c.http
	if forDiscovery.Transport == nil {
		forDiscovery.Transport = http.DefaultTransport
	}
	forDiscovery.Transport = compactDiscovery{forDiscovery.Transport}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, &forDiscovery); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cfg.Host, err)
	}
	return c, nil
}

// endpoint is one resource of the server in one version.
type endpoint struct {
	kind     kind
	resource schema.GroupVersionResource
	rest     rest.Interface
	params   runtime.ParameterCodec
	list     schema.GroupVersionKind
	scheme   *runtime.Scheme
	// namespace restricts lists to one namespace; empty for all.
	namespace string
	// secrets lists the metadata of secrets, so that their data is never sent.
	secrets metadata.ResourceInterface
}

// endpoint returns a client for a served resource.
func (c *client) endpoint(k kind, version string) (*endpoint, error) {
	info := k.describe()
	gv := schema.GroupVersion{Group: info.group, Version: version}
	client, err := c.rest(gv)
	if err != nil {
		return nil, err
	}
	e := &endpoint{
		kind: k, resource: gv.WithResource(info.resource), rest: client, params: c.params,
		list: gv.WithKind(info.name + "List"), scheme: c.scheme,
	}
	if k == kindSecret {
		all, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
		if err != nil {
			return nil, fmt.Errorf("connect to cluster %s: %w", c.host, err)
		}
		e.secrets = all.Resource(e.resource)
	}
	return e, nil
}

// rest returns a REST client for an API group.
func (c *client) rest(gv schema.GroupVersion) (rest.Interface, error) {
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion = &gv
	cfg.NegotiatedSerializer = c.codecs.WithoutConversion()
	if gv == apiServiceVersion {
		cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // the only form of our type
	}
	if cfg.APIPath = "/apis"; gv.Group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", c.host, err)
	}
	return client, nil
}

// page gets a page of the list.
func (e *endpoint) page(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if e.kind == kindSecret {
		return e.secrets.List(ctx, opts)
	}
	list, err := e.scheme.New(e.list)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", e.resource.GroupResource(), err)
	}
	err = e.rest.Get().NamespaceIfScoped(e.namespace, e.namespace != "").Resource(e.resource.Resource).
		VersionedParams(&opts, e.params).Do(ctx).Into(list)
	return list, err
}

// pageIn gets a page of the list of a namespace; of all if it is empty.
func (e *endpoint) pageIn(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	in := *e
	in.namespace = namespace
	return in.page(ctx, opts)
}

// watch opens a watch.
func (e *endpoint) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return e.rest.Get().Resource(e.resource.Resource).VersionedParams(&opts, e.params).Watch(ctx)
}

var errUnknownType = errors.New("server sent an object of an unexpected type")

// convert converts an object of any served version to the version that package graph
// uses, and trims it.
func convert(o runtime.Object, forInventory bool) (apiObject, error) {
	switch old := o.(type) {
	case *resourcev1beta1.ResourceSlice:
		slice := &resourcev1.ResourceSlice{ObjectMeta: old.ObjectMeta}
		if old.Spec.NodeName != "" {
			slice.Spec.NodeName = &old.Spec.NodeName
		}
		o = slice
	case *resourcev1beta2.ResourceSlice:
		o = &resourcev1.ResourceSlice{
			ObjectMeta: old.ObjectMeta,
			Spec:       resourcev1.ResourceSliceSpec{NodeName: old.Spec.NodeName},
		}
	case *metav1.PartialObjectMetadata:
		o = secretOf(old)
	case *certificatesv1beta1.PodCertificateRequest:
		o = &certificatesv1.PodCertificateRequest{
			ObjectMeta: old.ObjectMeta,
			Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: old.Spec.NodeName},
		}
	}
	object, ok := o.(apiObject)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errUnknownType, o)
	}
	trim(object, forInventory)
	return object, nil
}
