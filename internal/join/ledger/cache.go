package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Cache follows the ledger. Entries that it returns are shared: they are not to
// be changed. It may lag behind what a [Client] reads.
type Cache struct {
	informer *informer.Informer
}

// The indexes.
const (
	byNode       = "node"
	byToken      = "token"
	byCredential = "credential"
)

// NewCache returns a cache. It is empty until Run is called.
func NewCache(client *Client) *Cache {
	return &Cache{informer.New(informer.Source[*v1alpha1.NodeAttestationList]{
		List: client.entries.List, Watch: client.entries.Watch, Example: &v1alpha1.NodeAttestation{}, Name: v1alpha1.Resource,
	}, informer.NewAge(resource, 0, nil), cache.Indexers{byNode: nodeOf, byToken: tokensOf, byCredential: credentialsOf})}
}

// resource is the full name of the resource.
const resource = v1alpha1.Resource + "." + v1alpha1.Group

// LimitAge sets the age at which the cache is too old and [Cache.Fresh] returns an error; 0
// means no limit. Now may be nil. LimitAge must be called before Run.
func (c *Cache) LimitAge(limit time.Duration, now func() time.Time) {
	c.informer.Age = informer.NewAge(resource, limit, now)
}

// Fresh returns an error if the cache must not be used for decisions: [ErrNotRead] if the
// ledger has not been read yet, or a [*staleness.Error] if the cache is too old.
func (c *Cache) Fresh() error { return c.informer.Fresh(ErrNotRead) }

// ErrNotRead means that the ledger has not been read since Run was called.
var ErrNotRead = errors.New("reading nodeattestations: if this stays, install the custom resource, and let the server list and watch it")

// Age returns the age of the cache.
func (c *Cache) Age() staleness.Aged { return c.informer.Age }

// OnChange registers a function that is called with the latest version of each entry that
// is added, changed or removed. Calls do not overlap. OnChange must be called before Run.
func (c *Cache) OnChange(changed func(*v1alpha1.NodeAttestation)) {
	call := func(object any) { changed(object.(*v1alpha1.NodeAttestation)) }
	c.informer.Changed, c.informer.Deleted = append(c.informer.Changed, call), append(c.informer.Deleted, call)
}

// Run keeps the cache up to date until the context ends. It must be called only once.
func (c *Cache) Run(ctx context.Context) error {
	c.informer.Transform = informer.DropManagedFields
	c.informer.Run(ctx)
	return nil
}

// Synced reports whether the whole ledger has been read once.
func (c *Cache) Synced() bool { return c.informer.HasSynced() }

// Get returns the entry with a name.
func (c *Cache) Get(name string) (*v1alpha1.NodeAttestation, bool) {
	object, found, err := c.informer.GetByKey(name)
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
	objects, err := c.informer.ByIndex(index, value)
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
	objects := c.informer.List()
	entries := make([]*v1alpha1.NodeAttestation, 0, len(objects))
	for _, object := range objects {
		entries = append(entries, object.(*v1alpha1.NodeAttestation))
	}
	slices.SortFunc(entries, func(a, b *v1alpha1.NodeAttestation) int { return strings.Compare(a.Name, b.Name) })
	return entries
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
