package containment

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	// pause is the time between two compilations. A flood of changes is compiled in batches.
	pause = 50 * time.Millisecond
	// defaultInterval is the interval between checks of what the clock and the number of nodes
	// change.
	defaultInterval = time.Second
	// readAtOnce is the maximum number of dropped specs that are read before the next compilation.
	readAtOnce = 50
)

// compiler turns objects into what is enforced. Only one goroutine calls it.
type compiler interface {
	// compile publishes what is enforced, and returns what became of each object; nil if that cannot be said
	// yet.
	compile(ctx context.Context, objects []ranked, now time.Time) []outcome
	// due reports whether the same objects have another result now.
	due(now time.Time) bool
}

// follower follows one resource.
type follower struct {
	resource, kind string
	client         *client
	compiler       compiler
	opts           *Options
	age            *staleness.Age
	store          *store
	writer         *writer
	events         *objectevents.Recorder
	reports        *reports
	changed        chan struct{}
	// trouble is why the resource cannot be followed; nil if it can.
	trouble atomic.Pointer[error]
	synced  atomic.Bool
}

func (l *Live) newFollower(resource, kind string, compiler compiler) *follower {
	f := &follower{
		resource: resource, kind: kind, compiler: compiler, opts: &l.opts, events: l.events,
		client:  &client{l.rest, l.parameters, resource, kind},
		age:     staleness.New(resource+"."+v1alpha1.Group, l.opts.MaxStaleness, l.opts.Now),
		changed: make(chan struct{}, 1), reports: newReports(resource, l.opts.Observer),
	}
	f.writer = newWriter(f.client, &l.opts)
	f.store = &store{now: l.opts.Now, changed: func() { notify(f.changed) }, kept: newKept(), wanted: f.writer.wants}
	f.writer.current = f.store.current
	return f
}

// fresh returns an error if what was compiled must not be used for decisions.
func (f *follower) fresh() error {
	if !f.synced.Load() {
		if err := f.trouble.Load(); err != nil && *err != nil {
			return &NotReadError{f.resource, *err}
		}
		return &NotReadError{f.resource, nil}
	}
	return f.age.Check()
}

// NotReadError means that a resource has not been read since the server started.
type NotReadError struct {
	Resource string
	Cause    error
}

// Error implements error.
func (e *NotReadError) Error() string {
	text := e.Resource + " have not been read yet"
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text + "; if this stays, install the custom resource, and let the server list and watch it"
}

// Unwrap returns the cause.
func (e *NotReadError) Unwrap() error { return e.Cause }

func (f *follower) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(f.listWatch(), wholeLists{}),
		&object{}, f.store, cache.ReflectorOptions{Name: f.resource, TypeDescription: f.resource + "." + v1alpha1.Group})
	running.Go(func() { reflector.RunWithContext(ctx) })
	running.Go(func() { f.writer.run(ctx) })
	ticker := time.NewTicker(f.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-f.changed:
		case <-ticker.C:
			if !f.synced.Load() || !f.compiler.due(f.opts.Now()) {
				continue
			}
		case <-ctx.Done():
			return
		}
		f.apply(ctx)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// wholeLists says that lists are read, instead of watches that begin with all objects: client-go
// keeps the objects of these without a bound.
type wholeLists struct{}

// IsWatchListSemanticsUnSupported is read by client-go.
func (wholeLists) IsWatchListSemanticsUnSupported() bool { return true }

// listWatch lists and watches, and reports errors.
func (f *follower) listWatch() *cache.ListWatch {
	note := func(ctx context.Context, err error) {
		if err == nil || ctx.Err() == nil {
			f.reachable(err)
		}
	}
	followed := f.age.Follow(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		list, err := f.client.list(ctx, opts)
		if note(ctx, err); err != nil {
			return nil, err
		}
		return list, nil
	}, func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		w, err := f.client.watch(ctx, opts)
		note(ctx, err)
		return w, err
	})
	return &cache.ListWatch{ListWithContextFunc: followed.List, WatchFuncWithContext: followed.Watch}
}

// reachable records why the resource cannot be read, or with nil that it can be.
func (f *follower) reachable(err error) {
	was := f.trouble.Swap(&err)
	if failed := was != nil && *was != nil; failed != (err != nil) {
		f.opts.Observer.ContainmentUnreachable(f.resource, err)
	}
}

// apply compiles the objects, and says what became of them.
func (f *follower) apply(ctx context.Context) {
	objects, ok := f.store.snapshot()
	if !ok {
		return
	}
	outcomes := f.compiler.compile(ctx, objects, f.opts.Now())
	f.synced.Store(true)
	if outcomes == nil {
		return
	}
	f.writer.want(outcomes)
	f.store.compiled()
	recordBroken(f.events, f.kind, f.reports.changed(outcomes))
	f.readDropped(ctx, objects)
}

// readDropped reads specs that were dropped, and for which there is room again.
func (f *follower) readDropped(ctx context.Context, objects []ranked) {
	read, restored := 0, false
	for _, o := range objects {
		if o.exceeds || !o.dropped() {
			continue
		}
		if read++; read > readAtOnce {
			break
		}
		again, err := f.client.get(ctx, o.Name)
		if err != nil {
			f.age.Failed(fmt.Errorf("read what there was no room for: %w", err))
			return // it is tried after the next change, or the next list
		}
		restored = f.store.restore(again) || restored
	}
	if restored {
		notify(f.changed)
	}
}

// Stats describe a resource.
type Stats struct {
	// Resource is its name: "nodescopes".
	Resource string
	// Objects are the numbers of objects by what became of them.
	Objects map[verdict.Code]int
	// Changes is how often an object appeared, disappeared or changed its spec, and LastChange when
	// the last time was; zero if never.
	Changes    uint64
	LastChange time.Time
}

func (f *follower) stats() Stats {
	changes, last := f.store.counted()
	return Stats{Resource: f.resource, Objects: f.reports.counts(), Changes: changes, LastChange: last}
}
