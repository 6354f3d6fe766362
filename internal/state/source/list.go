package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

const (
	// pageSize is the limit of a list request.
	pageSize = 500
	// listAttempts is how often a list is started when its continue token expires,
	// which it does after some minutes.
	listAttempts = 3
)

// LiveOptions are options for reading a cluster.
type LiveOptions struct {
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(manifest.Progress)
	// ReadDone, if set, is called each time that a State of [Open] has read parts.
	ReadDone func()
	// Retain keeps the trimmed objects themselves, for [WriteSnapshot]. [Watch] does
	// not support it.
	Retain bool
	// Inventory makes [State].Inventory, for attack paths. Retain implies it. [Watch]
	// does not have this option.
	Inventory bool
	// MissingChanged, if set, is called by [Watch] when a resource becomes unreadable
	// (once, regardless of retries) and when it can be read again. It may be called
	// concurrently.
	MissingChanged func(m Missing, missing bool)
	// WithoutRBAC makes [Watch] skip roles and bindings, for callers that do not use
	// the RBAC authorizer. They need no right to read them.
	WithoutRBAC bool
	// APIServices makes [Watch] follow them, for [State.Aggregation].
	APIServices bool
	// MaxStaleness is the age beyond which the state of a kind counts as unknown
	// to [Live.TooOld]. 0 is no limit; the state is then never compared with the
	// cluster.
	MaxStaleness time.Duration
	// StaleChanged, if set, is called by [Watch] when a resource that had been read
	// becomes older than MaxStaleness, and when it is fresh again. It is never called
	// concurrently.
	StaleChanged func(w Watched, stale bool)
	// Reset, if set, is called by [Watch] after the state was dropped and before it
	// is listed again, with the cause in one line.
	Reset func(cause string)

	// For tests: the backoff of retries, and the clock.
	retry *wait.Backoff
	clock func() time.Time
}

// List reads a cluster once. It lists, page by page, and does not watch: it needs
// only the right to list, and each kind is consistent in itself. Only the kept part
// of a page stays in memory.
//
// Kinds that the user may not list are in [State.Missing]; kinds that the server does
// not serve have no objects. All other failures are errors.
func List(ctx context.Context, cfg *rest.Config, opts LiveOptions) (*State, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	l := &lister{client: c, state: d.state(c.host), report: reporter(opts.Progress)}
	if opts.Retain {
		l.state.retained = &retained{}
	}
	if opts.Inventory || opts.Retain {
		l.state.Inventory = inventory.New()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for k := range kindCount {
		if k.describe().inventory && l.state.Inventory == nil {
			continue
		}
		running.Go(func() {
			if err := l.kind(ctx, d, k); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return l.state, nil
}

// state returns an empty state of the server.
func (d *discovered) state(host string) *State {
	s := newState()
	s.fromCluster, s.facts.complete = true, true
	s.Origin = "cluster " + host
	s.Resources = d.resources
	s.setVersion(d.version)
	return s
}

// reporter makes progress safe for concurrent use, and counts objects.
func reporter(progress func(manifest.Progress)) func(source string, done, remaining int64, kept int) {
	if progress == nil {
		return func(string, int64, int64, int) {}
	}
	var mu sync.Mutex
	objects := 0
	return func(source string, done, remaining int64, kept int) {
		mu.Lock()
		defer mu.Unlock()
		objects += kept
		p := manifest.Progress{Source: source, Done: done, Objects: objects}
		if remaining >= 0 {
			p.Total = done + remaining
		}
		progress(p)
	}
}

type lister struct {
	client *client
	state  *State
	report func(source string, done, remaining int64, kept int)
}

// kind lists all objects of a kind.
func (l *lister) kind(ctx context.Context, d *discovered, k kind) error {
	e, err := l.endpoint(d, k)
	if e == nil {
		return err
	}
	l.state.retained.reset(e.kind)
	listed, err := l.pages(ctx, e, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return l.notListed(ctx, e, err)
	}
	listed.removeUnlisted()
	if k.describe().rbac {
		l.state.rbacRead(k)
	}
	return nil
}

// endpoint returns nil without an error for a kind that is not served, or cannot be read, which it records.
func (l *lister) endpoint(d *discovered, k kind) (*endpoint, error) {
	version, how, reason := d.serves(k)
	switch how {
	case notServed:
		return nil, nil
	case unreadable:
		l.state.markMissing(k, reason)
		return nil, nil
	}
	return l.client.endpoint(k, version)
}

// notListed returns nil for the error of a list that means that the user may not list the kind, which it records, or that
// there is no such resource.
func (l *lister) notListed(ctx context.Context, e *endpoint, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		l.state.markMissing(e.kind, missingReason("list", e.resource.GroupResource(), err))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	return l.client.explain(ctx, "list "+e.resource.GroupResource().String()+" of", err)
}

// pages applies all pages of a list to the state. It starts again if the list expires.
func (l *lister) pages(ctx context.Context, e *endpoint, opts metav1.ListOptions) (listed listing, err error) {
	for range listAttempts {
		listed = listing{state: l.state, kind: e.kind, keys: map[objectKey]struct{}{}}
		if err = l.eachPage(ctx, e, opts, &listed); !apierrors.IsResourceExpired(err) {
			break
		}
		l.state.retained.reset(e.kind)
	}
	return listed, err
}

// eachPage applies all pages of a list. While it applies one, it requests the next.
func (l *lister) eachPage(ctx context.Context, e *endpoint, opts metav1.ListOptions, listed *listing) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		list runtime.Object
		err  error
	}
	pages := make(chan result)
	go func() {
		defer close(pages)
		for opts := opts; ; {
			list, err := e.page(ctx, opts)
			select {
			case pages <- result{list, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			if opts.Continue = listMeta(list).GetContinue(); opts.Continue == "" {
				return
			}
		}
	}()
	for page := range pages {
		if page.err != nil {
			return page.err
		}
		before := listed.count
		err := meta.EachListItem(page.list, func(item runtime.Object) error {
			_, err := listed.addObject(item)
			return err
		})
		if err != nil {
			return err
		}
		l.report(e.resource.Resource, int64(listed.count), remaining(page.list), listed.count-before)
	}
	return ctx.Err()
}

// listing applies the objects of a list to the state and keeps their names. At the
// end it removes the objects that were not listed.
type listing struct {
	state *State
	kind  kind
	keys  map[objectKey]struct{}
	count int
	// sample is read again after the list; nil for a list that is read once.
	sample *staleness.Sample
}

func (l *listing) addObject(item runtime.Object) (objectKey, error) {
	key, err := l.state.applyReceived(l.kind, item)
	if key.name != "" {
		l.keys[key] = struct{}{}
		l.count++
	}
	return key, err
}

// removeUnlisted removes the objects that were not listed.
func (l *listing) removeUnlisted() { l.state.sweep(l.kind, l.keys) }

// applyReceived applies an object that an API server sent. The key is empty if the
// object is of another kind.
func (s *State) applyReceived(k kind, sent runtime.Object) (objectKey, error) {
	m, err := meta.Accessor(sent)
	if err != nil {
		return objectKey{}, err
	}
	version := s.objects.stampOf(m) // before the object is trimmed
	o, err := convert(sent, s.Inventory != nil)
	if err != nil {
		return objectKey{}, err
	}
	return keyOf(o.GetNamespace(), o.GetName()), s.applyObject(k, o, version)
}

// applyObject applies an object of a cluster, and retains it if requested.
func (s *State) applyObject(k kind, o apiObject, version stamp) error {
	if _, err := s.set(k, o, version); err != nil {
		return &unkeptError{fmt.Errorf("keep %s %s: %w", k, displayName(o), err)}
	}
	if s.retained == nil {
		return nil
	}
	encoded, err := encode(k, o)
	if err != nil {
		return err
	}
	s.retained.add(&object{kind: k, api: o, encoded: encoded})
	return nil
}

// unkeptError is the error of an object whose record could not be encoded. Its
// relations are known.
type unkeptError struct{ error }

func (e *unkeptError) Unwrap() error { return e.error }

// rbacRead records that a kind of RBAC objects was read, even if there are none.
func (s *State) rbacRead(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.rbacRead |= 1 << k
}

// listMeta returns the metadata of a list; empty if it is not a list.
func listMeta(list runtime.Object) metav1.ListInterface {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return &metav1.ListMeta{}
	}
	return m
}

// remaining is how many objects the server says will follow; 0 on the last
// page, -1 when it does not say.
func remaining(list runtime.Object) int64 {
	m := listMeta(list)
	switch {
	case m.GetContinue() == "":
		return 0
	case m.GetRemainingItemCount() == nil:
		return -1
	}
	return *m.GetRemainingItemCount()
}
