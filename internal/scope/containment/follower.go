package containment

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/informer"
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
)

// compiler turns objects into what is enforced. Only one goroutine calls it.
type compiler interface {
	// compile publishes what is enforced, and returns the outcome of each object; nil if it is not known
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
	// copied are the objects; objects out of bounds have no spec. added is the size of the specs that were
	// added since these were dropped.
	copied  *informer.Informer
	added   int
	writer  *writer
	events  *objectevents.Recorder
	reports *reports
	changed chan struct{}
	// trouble is why the resource cannot be followed; nil if it can.
	trouble atomic.Pointer[error]
	synced  atomic.Bool
}

func (l *Live) newFollower(resource, kind string, compiler compiler) *follower {
	f := &follower{
		resource: resource, kind: kind, compiler: compiler, opts: &l.opts, events: l.events,
		client:  &client{l.rest, l.parameters, resource, kind},
		changed: make(chan struct{}, 1), reports: newReports(resource, l.opts.Now, l.opts.Observer),
	}
	f.copied = informer.New(informer.Source[*list]{Name: resource, Example: &object{}, List: f.client.list, Watch: f.client.watch},
		staleness.New(resource+"."+v1alpha1.Group, l.opts.MaxStaleness, l.opts.Now), nil)
	f.copied.Reached = f.reachable
	f.copied.Listed = func() { notify(f.changed) }
	f.copied.Changed = []func(any){f.put}
	f.copied.Deleted = []func(any){func(deleted any) {
		f.reports.count(deleted.(*object), true)
		notify(f.changed)
	}}
	f.writer = newWriter(f.client, &l.opts, f.current)
	return f
}

// put is called for each object that was added or changed, before the next change of the copy.
func (f *follower) put(changed any) {
	o := changed.(*object)
	f.reports.count(o, false)
	if f.added += len(o.spec); f.added > maxSpecs {
		f.added = 0
		for _, o := range bounded(f.all()) {
			_ = f.copied.Update(o) // the store in memory has no errors
		}
	}
	notify(f.changed)
}

func (f *follower) all() []*object {
	var all []*object
	for _, o := range f.copied.List() {
		all = append(all, o.(*object))
	}
	return all
}

// current returns the object with a name; nil if there is none.
func (f *follower) current(name string) *object {
	o, _, _ := f.copied.GetByKey(name)
	current, _ := o.(*object)
	return current
}

// fresh returns an error if what was compiled must not be used for decisions.
func (f *follower) fresh() error {
	if !f.synced.Load() {
		if err := f.trouble.Load(); err != nil && *err != nil {
			return &NotReadError{f.resource, *err}
		}
		return &NotReadError{f.resource, nil}
	}
	return f.copied.Age.Check()
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
	running.Go(func() { f.copied.Run(ctx) })
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

// reachable records why the resource cannot be read, or with nil that it can be.
func (f *follower) reachable(err error) {
	was := f.trouble.Swap(&err)
	if failed := was != nil && *was != nil; failed != (err != nil) {
		f.opts.Observer.ContainmentUnreachable(f.resource, err)
	}
}

// apply compiles the objects, and reports their outcomes.
func (f *follower) apply(ctx context.Context) {
	if !f.copied.HasSynced() {
		return
	}
	outcomes := f.compiler.compile(ctx, rank(f.all()), f.opts.Now())
	f.synced.Store(true)
	if outcomes == nil {
		return
	}
	f.writer.want(outcomes)
	for _, o := range f.reports.changed(outcomes) {
		if !f.events.Record(o.event(f.kind)) {
			return // the limits of Events allow no more; the status, the log and the metrics do not depend on them
		}
	}
}

// Stats describe a resource.
type Stats struct {
	// Resource is its name: "nodescopes".
	Resource string
	// Objects are the numbers of objects by the code of their outcome.
	Objects map[verdict.Code]int
	// Changes is how often an object appeared, disappeared or changed its spec, and LastChange when
	// the last time was; zero if never.
	Changes    uint64
	LastChange time.Time
}

func (f *follower) stats() Stats {
	f.reports.mu.Lock()
	defer f.reports.mu.Unlock()
	return Stats{f.resource, maps.Clone(f.reports.by), f.reports.changes, f.reports.last}
}
