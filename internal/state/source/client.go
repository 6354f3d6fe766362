package source

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
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
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, c.http); err != nil {
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

// discovered is the result of discovery.
type discovered struct {
	version   string
	resources []APIResource
	// failed are the API groups whose discovery failed.
	failed map[string]error
}

// discover reads the version and the resources. Groups that cannot be discovered,
// such as groups of an unavailable aggregated API server, are not an error.
func (c *client) discover(ctx context.Context) (*discovered, error) {
	version, err := c.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, c.explain(ctx, "ask for the version of", err)
	}
	d := &discovered{version: BehavesAs(version), failed: map[string]error{}}
	_, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		for gv, cause := range partial.Groups {
			d.failed[gv.Group] = cause
		}
	} else if err != nil {
		return nil, c.explain(ctx, "discover the resources of", err)
	}
	d.resources = mergeResources(lists)
	return d, nil
}

// BehavesAs returns the version whose behaviour a server has: its own, "v1.36.3", or
// the one that it emulates, "v1.35" (--emulated-version, KEP-4330).
func BehavesAs(info *version.Info) string {
	if info.EmulationMajor == "" || info.EmulationMinor == "" || info.EmulationMajor == info.Major && info.EmulationMinor == info.Minor {
		return info.GitVersion
	}
	return "v" + info.EmulationMajor + "." + info.EmulationMinor
}

// mergeResources merges the versions of each resource into one entry, the most stable
// version first: discovery returns them in any order. Subresources are left out.
func mergeResources(lists []*metav1.APIResourceList) []APIResource {
	slices.SortFunc(lists, func(a, b *metav1.APIResourceList) int {
		x, _ := schema.ParseGroupVersion(a.GroupVersion)
		y, _ := schema.ParseGroupVersion(b.GroupVersion)
		return cmp.Or(strings.Compare(x.Group, y.Group), version.CompareKubeAwareVersionStrings(y.Version, x.Version))
	})
	var merged []APIResource
	index := map[schema.GroupResource]int{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			gr := schema.GroupResource{Group: gv.Group, Resource: r.Name}
			i, known := index[gr]
			if !known {
				i = len(merged)
				index[gr] = i
				merged = append(merged, APIResource{
					Group: gv.Group, Name: r.Name, Singular: r.SingularName, Kind: r.Kind,
					ShortNames: r.ShortNames, Namespaced: r.Namespaced,
				})
			}
			merged[i].Versions = append(merged[i].Versions, gv.Version)
		}
	}
	slices.SortStableFunc(merged, func(a, b APIResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return merged
}

// serving is whether and how a server serves a kind.
type serving uint8

const (
	notServed serving = iota // objects of the kind cannot exist
	served
	unreadable // served, but not readable; see the reason
)

// serves finds the newest version in which a kind is served and can be read.
func (d *discovered) serves(k kind) (version string, how serving, reason string) {
	info := k.describe()
	i := slices.IndexFunc(d.resources, func(r APIResource) bool {
		return r.Group == info.group && r.Name == info.resource
	})
	if i < 0 {
		if err, failed := d.failed[info.group]; failed {
			return "", unreadable, fmt.Sprintf("the server could not say whether it serves %s: %v", info.groupResource(), err)
		}
		return "", notServed, ""
	}
	for _, v := range liveVersions(k) {
		if slices.Contains(d.resources[i].Versions, v) {
			return v, served, ""
		}
	}
	return "", unreadable, fmt.Sprintf("the server serves %s only in version %s, which is not supported; supported versions are %s",
		info.groupResource(), strings.Join(d.resources[i].Versions, ", "), strings.Join(liveVersions(k), ", "))
}

// liveVersions are the versions of a kind for which there are API types.
func liveVersions(k kind) []string {
	if k.describe().containment {
		return k.describe().versions
	}
	return slices.DeleteFunc(slices.Clone(k.describe().versions), func(v string) bool { return strings.Contains(v, "alpha") })
}

// explain wraps the error of a first request: the server, the cause, and what to do.
func (c *client) explain(ctx context.Context, doing string, err error) error {
	return ExplainFailure(ctx, c.host, doing, err)
}

// ExplainFailure wraps an error of a request to an API server: the action, the
// cluster, the cause, and what to do. The action is the text before the word
// "cluster".
func ExplainFailure(ctx context.Context, host, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	remedy := "check that the API server runs and can be reached from here, and that the kubeconfig names the right server " +
		"(kubectl config view --minify)"
	switch {
	case apierrors.IsUnauthorized(err):
		remedy = "the credentials are missing or no longer valid; renew them and try kubectl auth whoami"
	case apierrors.IsForbidden(err):
		remedy = "the user may not read it; bind the cluster role system:discovery to the user"
	case errors.As(err, &authority), errors.As(err, &hostname):
		remedy = "check certificate-authority and server in the kubeconfig"
	}
	return fmt.Errorf("%s cluster %s: %w; %s", doing, host, err, remedy)
}

// missingReason explains why a resource could not be read, and what to do.
func missingReason(verb string, resource schema.GroupResource, err error) string {
	return fmt.Sprintf("%s%s: %v%s%s to the user", notAllowed, verb, err, bindRole, resource)
}

// The parts of a reason of the form of [missingReason].
const (
	notAllowed = "not allowed to "
	bindRole   = "; bind a cluster role with the verbs list and watch on "
)

// Refusal is the part of the reason for a resource that the user may not list that is not about
// this resource only: "not allowed to list them (pods is forbidden …)". It is empty for other reasons.
func (m Missing) Refusal() string {
	rest, found := strings.CutPrefix(m.Reason, notAllowed+"list: ")
	cause, _, hasRemedy := strings.Cut(rest, bindRole)
	if !found || !hasRemedy {
		return ""
	}
	return notAllowed + "list them (" + cause + ")"
}
