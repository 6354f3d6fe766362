package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Cache follows the ledger. Entries that it returns are shared: they are not to
// be changed. It may lag behind what a [Client] reads.
type Cache struct {
	informer cache.SharedIndexInformer
	changed  []func(*v1alpha1.NodeAttestation)
	// age and followed must not be replaced after Run.
	age      *staleness.Age
	followed *staleness.Followed
	client   *Client
}

// The indexes.
const (
	byNode       = "node"
	byToken      = "token"
	byCredential = "credential"
)

// NewCache returns a cache. It is empty until Run is called.
func NewCache(client *Client) *Cache {
	c := &Cache{client: client}
	c.LimitAge(0, nil)
	c.informer = cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				return c.followed.List(ctx, opts)
			},
			WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				return c.followed.Watch(ctx, opts)
			},
		},
		&v1alpha1.NodeAttestation{},
		cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{byNode: nodeOf, byToken: tokensOf, byCredential: credentialsOf},
			ObjectDescription: v1alpha1.Resource,
		},
	)
	return c
}

// resource is the full name of the resource.
const resource = v1alpha1.Resource + "." + v1alpha1.Group

// LimitAge sets the age at which the cache is too old and [Cache.Fresh] returns an error; 0
// means no limit. Now may be nil. LimitAge must be called before Run.
func (c *Cache) LimitAge(limit time.Duration, now func() time.Time) {
	c.age = staleness.New(resource, limit, now)
	c.followed = c.age.Follow(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return c.client.list(ctx, opts)
	}, c.client.watch)
}

// Fresh returns an error if the cache must not be used for decisions: [ErrNotRead] if the
// ledger has not been read yet, or a [*staleness.Error] if the cache is too old.
func (c *Cache) Fresh() error {
	if !c.Synced() {
		return ErrNotRead
	}
	return c.age.Check()
}

// ErrNotRead means that the ledger has not been read since Run was called.
var ErrNotRead = errors.New("reading nodeattestations: if this stays, install the custom resource, and let the server list and watch it")

// Age is the age of a cache.
type Age interface {
	// Source names the resource.
	Source() string
	// Value returns the time since the API server last confirmed the cache; false if it
	// never did.
	Value() (age time.Duration, known bool)
	// Check returns an error if the cache is too old; see [Cache.LimitAge].
	Check() error
}

// Age returns the age of the cache.
func (c *Cache) Age() Age { return c.age }

// OnChange registers a function that is called with the latest version of each entry that
// is added, changed or removed. Calls do not overlap. OnChange must be called before Run.
func (c *Cache) OnChange(changed func(*v1alpha1.NodeAttestation)) {
	c.changed = append(c.changed, changed)
}

// Run keeps the cache up to date until the context ends. It must be called only once.
func (c *Cache) Run(ctx context.Context) error {
	if err := c.informer.SetTransform(trim); err != nil {
		return fmt.Errorf("follow %s: %w", v1alpha1.Resource, err)
	}
	for _, changed := range c.changed {
		if _, err := c.informer.AddEventHandler(handler(changed)); err != nil {
			return fmt.Errorf("follow %s: %w", v1alpha1.Resource, err)
		}
	}
	c.informer.RunWithContext(ctx)
	return nil
}

// Synced reports whether the whole ledger has been read once.
func (c *Cache) Synced() bool { return c.informer.HasSynced() }

// Get returns the entry with a name.
func (c *Cache) Get(name string) (*v1alpha1.NodeAttestation, bool) {
	object, found, err := c.informer.GetIndexer().GetByKey(name)
	if err != nil || !found {
		return nil, false // the store in memory has no errors
	}
	return object.(*v1alpha1.NodeAttestation), true
}

// ByNode returns the entries with a node name, including revoked ones, the oldest first: by
// creation time, then by name.
func (c *Cache) ByNode(node string) []*v1alpha1.NodeAttestation {
	return c.by(byNode, node)
}

// ByToken returns the entries whose spec or status names a token, the oldest first. There
// is at most one, unless entries were edited manually.
func (c *Cache) ByToken(id string) []*v1alpha1.NodeAttestation { return c.by(byToken, id) }

// ByCredential returns the entries whose machines are known to have been issued a
// certificate, the oldest first. Their node names may have changed since.
func (c *Cache) ByCredential(id string) []*v1alpha1.NodeAttestation { return c.by(byCredential, id) }

func (c *Cache) by(index, value string) []*v1alpha1.NodeAttestation {
	objects, err := c.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(err) // no such index
	}
	entries := make([]*v1alpha1.NodeAttestation, 0, len(objects))
	for _, object := range objects {
		entries = append(entries, object.(*v1alpha1.NodeAttestation))
	}
	slices.SortFunc(entries, v1alpha1.Older)
	return entries
}

// All returns all entries, sorted by name.
func (c *Cache) All() []*v1alpha1.NodeAttestation {
	objects := c.informer.GetIndexer().List()
	entries := make([]*v1alpha1.NodeAttestation, 0, len(objects))
	for _, object := range objects {
		entries = append(entries, object.(*v1alpha1.NodeAttestation))
	}
	slices.SortFunc(entries, func(a, b *v1alpha1.NodeAttestation) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

func handler(changed func(*v1alpha1.NodeAttestation)) cache.ResourceEventHandler {
	call := func(object any) {
		if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		if entry, ok := object.(*v1alpha1.NodeAttestation); ok {
			changed(entry)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: call, UpdateFunc: func(_, object any) { call(object) }, DeleteFunc: call}
}

func nodeOf(object any) ([]string, error) {
	return []string{object.(*v1alpha1.NodeAttestation).Spec.NodeName}, nil
}

func tokensOf(object any) ([]string, error) {
	return object.(*v1alpha1.NodeAttestation).TokenIDs(), nil
}

func credentialsOf(object any) ([]string, error) {
	return object.(*v1alpha1.NodeAttestation).Status.Credentials, nil
}

// trim removes a field that no user of the cache reads.
func trim(object any) (any, error) {
	if entry, ok := object.(*v1alpha1.NodeAttestation); ok {
		entry.ManagedFields = nil
	}
	return object, nil
}
