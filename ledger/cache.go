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
	// age is replaced before anything is followed.
	age *staleness.Age
}

// The indexes.
const (
	byNode       = "node"
	byToken      = "token"
	byCredential = "credential"
)

// NewCache returns a cache that follows nothing until it runs.
func NewCache(client *Client) *Cache {
	c := &Cache{age: staleness.New(resource, 0, nil)}
	c.informer = cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				list, err := client.list(ctx, staleness.FromStore(opts))
				c.age.List(list, err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				return c.age.Follow(opts, func(opts metav1.ListOptions) (watch.Interface, error) { return client.watch(ctx, opts) })
			},
		},
		&v1alpha1.NodeAttestation{},
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byNode: nodeOf, byToken: tokensOf, byCredential: credentialsOf}, ObjectDescription: v1alpha1.Resource},
	)
	return c
}

// resource is the full name of what is followed.
const resource = v1alpha1.Resource + "." + v1alpha1.Group

// LimitAge sets how long the ledger may not have been heard from while [Cache.Fresh]
// holds; 0 for no limit. Now may be nil. It is called before Run.
func (c *Cache) LimitAge(limit time.Duration, now func() time.Time) {
	c.age = staleness.New(resource, limit, now)
}

// Fresh returns an error while the cache is not one to decide by: the ledger has not
// been read yet, or was not heard from for too long, which is a [*staleness.Error].
func (c *Cache) Fresh() error {
	if !c.Synced() {
		return ErrNotRead
	}
	return c.age.Check()
}

// ErrNotRead says that the ledger has not been read since the cache began to run.
var ErrNotRead = errors.New("reading nodeattestations: if this stays, install the custom resource, and let the server list and watch it")

// Age says how old what the cache holds is.
type Age interface {
	// Source is what is followed, for people.
	Source() string
	// Value is the time since the API server was last heard from; false if it never was.
	Value() (age time.Duration, known bool)
	// Check returns an error if that is longer than it may be; see [Cache.LimitAge].
	Check() error
}

// Age is how old the cache is.
func (c *Cache) Age() Age { return c.age }

// OnChange has a function called, one call at a time, with each entry that is
// added, changed or removed, as it was last. It is called before Run.
func (c *Cache) OnChange(changed func(*v1alpha1.NodeAttestation)) {
	c.changed = append(c.changed, changed)
}

// Run follows the ledger until the context ends. It is called once.
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

// Get returns an entry by its name.
func (c *Cache) Get(name string) (*v1alpha1.NodeAttestation, bool) {
	object, found, err := c.informer.GetIndexer().GetByKey(name)
	if err != nil || !found {
		return nil, false // the store in memory has no errors
	}
	return object.(*v1alpha1.NodeAttestation), true
}

// ByNode returns the entries with a node name, revoked ones too, the oldest
// first: by creation, then by name.
func (c *Cache) ByNode(node string) []*v1alpha1.NodeAttestation {
	return c.by(byNode, node)
}

// ByToken returns the entries whose spec or status names a token, the oldest
// first. There is one, unless somebody wrote entries by hand.
func (c *Cache) ByToken(id string) []*v1alpha1.NodeAttestation { return c.by(byToken, id) }

// ByCredential returns the entries whose machines are known to have been issued a
// certificate, the oldest first. Their node names may be others by now.
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

// All returns the whole ledger, by name.
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
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
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

// trim drops what nobody asks the cache for.
func trim(object any) (any, error) {
	if entry, ok := object.(*v1alpha1.NodeAttestation); ok {
		entry.ManagedFields = nil
	}
	return object, nil
}
