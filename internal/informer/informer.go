// Package informer keeps a copy of the objects of one resource in an API server. The copy follows the
// API server again within seconds after a fault, however long the fault was.
//
// The informers of client-go double the pause after each list or watch that ends, up to a minute,
// and begin again only after two minutes without a pause. So a copy could miss all changes for a
// minute after the API server was back.
package informer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

const (
	// pause is the least time between the end of a watch, or a failed list, and the next list. At most
	// half of it is added at random.
	pause = time.Second
	// listLimit limits the time of a list. An answer that was lost is not waited for any longer.
	listLimit = 25 * time.Second
	// WatchLife is how long watches of small resources last, [staleness.Age.LimitWatches]. Then the
	// resource is listed, which shows changes that the watch did not deliver.
	WatchLife = 30 * time.Second
)

// Source lists and watches a resource.
type Source[L runtime.Object] struct {
	List  func(context.Context, metav1.ListOptions) (L, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Example is an object of the resource, Name the plural of the resource.
	Example runtime.Object
	Name    string
}

// Informer is a copy. Its Indexer is for reading. The fields must not be changed after Run was called.
type Informer struct {
	cache.Indexer
	// Age is the age of the copy.
	Age *staleness.Age
	// Transform returns what the copy keeps of an object, with the name; nil: all. It is also called for what it returned.
	Transform cache.TransformFunc
	// Reached is called with the error of each list and watch, and with nil when a watch opens. By default, errors
	// are logged.
	Reached func(error)
	// Listed is called when the copy has a list; nil: nothing is.
	Listed func()
	// Changed are called for each object that was added or changed, and Deleted for each that was
	// deleted, after the copy has the change. Calls do not overlap, and must not block.
	Changed, Deleted []func(object any)

	list      staleness.ListFunc
	watch     staleness.WatchFunc
	followed  *staleness.Followed // since Run was called
	reflector *cache.Reflector
	synced    atomic.Bool
	reported  string // the last error that was logged; empty after a list
}

// New returns an informer that is empty until Run is called.
func New[L runtime.Object](source Source[L], age *staleness.Age, indexers cache.Indexers) *Informer {
	i := &Informer{
		Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), Age: age, watch: source.Watch,
		list: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return source.List(ctx, opts)
		},
	}
	i.Reached = func(err error) { i.report(source.Name, err) }
	i.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			limited, cancel := context.WithTimeout(ctx, listLimit)
			defer cancel()
			list, err := i.followed.List(limited, opts)
			if err != nil && ctx.Err() == nil {
				i.Reached(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			watch, err := i.followed.Watch(ctx, opts)
			if ctx.Err() == nil && !staleness.IsDue(err) {
				i.Reached(err)
			}
			return watch, err
		},
	}, lists{}), source.Example, store{i}, cache.ReflectorOptions{
		Name: source.Name, TypeDescription: source.Name, Backoff: &wait.Backoff{Duration: pause, Jitter: 0.5},
	})
	return i
}

// lists says that lists are read, instead of watches that begin with all objects.
type lists struct{}

// IsWatchListSemanticsUnSupported is read by client-go.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

// Run keeps the copy up to date until the context ends. It must be called only once. The reflector would
// log each failed list; Run logs an error when it differs from the one before.
func (i *Informer) Run(ctx context.Context) {
	i.followed = i.Age.Follow(i.list, i.watch)
	i.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// NewAge returns the age of a copy of a small resource with a full name such as nodes.example.com. Limit is the age at which
// the copy is too old; 0 means no limit. Now may be nil.
func NewAge(resource string, limit time.Duration, now func() time.Time) *staleness.Age {
	return staleness.New(resource, limit, now).LimitWatches(WatchLife)
}

// Fresh returns an error if the copy must not be used for decisions: unread if nothing was read since Run was called, or a
// [*staleness.Error] if it is too old.
func (i *Informer) Fresh(unread error) error {
	if !i.HasSynced() {
		return unread
	}
	return i.Age.Check()
}

// DropManagedFields is a Transform. It removes what says which client wrote which field.
func DropManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// report logs the result of a list or a watch. The reflector makes one at a time.
func (i *Informer) report(name string, err error) {
	switch {
	case err == nil:
		i.reported = ""
	case err.Error() != i.reported:
		i.reported = err.Error()
		klog.Background().Error(err, "cannot follow the resource: trying again each second", "resource", name)
	}
}

// HasSynced reports whether all objects have been read once.
func (i *Informer) HasSynced() bool { return i.synced.Load() }

// store receives the changes from the reflector, one at a time.
type store struct{ *Informer }

// Transformer lets the reflector transform the objects of a list one by one.
func (s store) Transformer() cache.TransformFunc { return s.transform }

func (s store) transform(object any) (any, error) {
	if s.Transform == nil {
		return object, nil
	}
	return s.Transform(object)
}

func (s store) Add(object any) error { return s.Update(object) }

func (s store) Update(object any) error {
	kept, err := s.transform(object)
	if err != nil {
		return err
	}
	if err := s.Indexer.Update(kept); err != nil {
		return err
	}
	call(s.Changed, kept)
	return nil
}

// Delete calls the functions with the last version that the copy had.
func (s store) Delete(object any) error {
	kept, err := s.transform(object)
	if err != nil {
		return err
	}
	known, exists, err := s.Get(kept)
	if err != nil || !exists {
		return err
	}
	if err := s.Indexer.Delete(known); err != nil {
		return err
	}
	call(s.Deleted, known)
	return nil
}

// Replace applies a list. Objects whose version is known are not changed.
func (s store) Replace(objects []any, version string) error {
	before := map[string]any{}
	for _, key := range s.ListKeys() {
		before[key], _, _ = s.GetByKey(key) // the store in memory has no errors
	}
	var changed []any
	for n, object := range objects {
		kept, err := s.transform(object)
		if err != nil {
			return err
		}
		key, err := cache.MetaNamespaceKeyFunc(kept)
		if err != nil {
			return err
		}
		if !sameVersion(before[key], kept) {
			changed = append(changed, kept)
		}
		delete(before, key)
		objects[n] = kept
	}
	if err := s.Indexer.Replace(objects, version); err != nil {
		return err
	}
	for _, object := range before {
		call(s.Deleted, object)
	}
	for _, object := range changed {
		call(s.Changed, object)
	}
	s.synced.Store(true)
	if s.Listed != nil {
		s.Listed()
	}
	return nil
}

// Resync has nothing to do: no period is set.
func (s store) Resync() error { return nil }

func sameVersion(known, listed any) bool {
	if known == nil {
		return false
	}
	a, errA := meta.Accessor(known)
	b, errB := meta.Accessor(listed)
	return errA == nil && errB == nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

func call(functions []func(any), object any) {
	for _, f := range functions {
		f(object)
	}
}
