package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// maxDepth is the depth of the JSON of an object, with the managed fields that a cluster adds.
const maxDepth = 100

// ErrNone means that what was read has no NodeScopes.
var ErrNone = errors.New("no NodeScopes")

// Read reads the NodeScopes of files and folders of manifests, sorted by name; [ErrNone] if they
// have none. Objects of other kinds, and documents that are no objects, are passed over. A field that
// NodeScopes do not have is an error, and so is a name that occurs twice.
func Read(ctx context.Context, paths []string, stdin io.Reader) ([]*v1alpha1.NodeScope, error) {
	var scopes []*v1alpha1.NodeScope
	places := map[string]string{}
	wanted := func(apiVersion, kind string, _ []byte) bool {
		group, _, _ := strings.Cut(apiVersion, "/")
		return kind == "" || group == v1alpha1.Group && kind == v1alpha1.NodeScopeKind
	}
	names, err := manifest.Read(ctx, paths, manifest.Options{Stdin: stdin, Wanted: wanted}, func(d *manifest.Document) error {
		if d.Kind == "" {
			return nil // not an object, such as the values of a chart
		}
		scope, err := decode(d)
		if err != nil {
			return err
		}
		place := fmt.Sprintf("%s:%d", d.File(), d.Line())
		if before, twice := places[scope.Name]; twice {
			return d.Fail(fmt.Errorf("NodeScope %s is in %s already", scope.Name, before))
		}
		places[scope.Name] = place
		scopes = append(scopes, scope)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read NodeScopes: %w", err)
	}
	if len(scopes) == 0 {
		return nil, fmt.Errorf("%w in %s: name the manifests of the scopes; a snapshot is read with --from", ErrNone, render.Files(names))
	}
	sortByName(scopes)
	return scopes, nil
}

func decode(d *manifest.Document) (*v1alpha1.NodeScope, error) {
	if want := v1alpha1.GroupVersion().String(); d.APIVersion != want {
		return nil, d.Fail(fmt.Errorf("apiVersion %s is not supported: want %s", d.APIVersion, want))
	}
	scope := &v1alpha1.NodeScope{}
	if err := strictjson.Unmarshal(d.JSON(), scope, strictjson.Options{MaxDepth: maxDepth}); err != nil {
		return nil, d.Fail(err)
	}
	if scope.Name == "" {
		return nil, d.Fail(errors.New("the NodeScope has no metadata.name"))
	}
	return scope, nil
}

// Client returns a client for NodeScopes and Quarantines of a cluster, and the codec of its options.
func Client(config *rest.Config) (*rest.RESTClient, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the types of %s: %w", v1alpha1.Group, err)
	}
	config = rest.CopyConfig(config)
	version := v1alpha1.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}

// List lists the NodeScopes of a cluster, sorted by name.
func List(ctx context.Context, config *rest.Config) ([]*v1alpha1.NodeScope, error) {
	client, codec, err := Client(config)
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.NodeScopeList{}
	err = client.Get().Resource(v1alpha1.NodeScopeResource).
		VersionedParams(&metav1.ListOptions{}, codec).Do(ctx).Into(list)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the cluster does not know %s: install the CustomResourceDefinition, or name manifests with -f: %w",
			v1alpha1.NodeScopeResource, err)
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", v1alpha1.NodeScopeResource, err)
	}
	scopes := make([]*v1alpha1.NodeScope, len(list.Items))
	for i := range list.Items {
		scopes[i] = &list.Items[i]
	}
	sortByName(scopes)
	return scopes, nil
}

func sortByName(scopes []*v1alpha1.NodeScope) {
	slices.SortFunc(scopes, func(a, b *v1alpha1.NodeScope) int { return strings.Compare(a.Name, b.Name) })
}
