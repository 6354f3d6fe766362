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

	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

const (
	// pageSize is how many objects are asked for at once.
	pageSize = 500
	// listAttempts is how often a list is begun whose pages expire on the way,
	// which they do after some minutes.
	listAttempts = 3
)

// LiveOptions say how a cluster is read.
type LiveOptions struct {
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(manifest.Progress)
	// Retain keeps the trimmed objects themselves, for [WriteSnapshot]. [Watch]
	// does not have this option.
	Retain bool
	// MissingChanged, if set, is called by [Watch] when a resource turns out to
	// be unreadable (once, however often it is tried) and when it can be read
	// again. It may be called concurrently.
	MissingChanged func(m Missing, missing bool)
	// WithoutRBAC lets [Watch] leave out roles and bindings, for those who do
	// not ask the RBAC authorizer and need no right to read them.
	WithoutRBAC bool
	// MaxStaleness is the age beyond which the state of a kind counts as unknown
	// to [Live.TooOld]. 0 is no limit; the state is then never compared with the
	// cluster.
	MaxStaleness time.Duration
	// StaleChanged, if set, is called by [Watch] when a resource that had been
	// read is older than MaxStaleness, and when it is so no more. It is never
	// called concurrently.
	StaleChanged func(w Watched, stale bool)
	// Reset, if set, is called by [Watch] after the state was dropped, to be read
	// anew, with the cause in one line.
	Reset func(cause string)

	// In tests: how failures are tried again, and the time.
	retry *wait.Backoff
	clock func() time.Time
}

// List reads a cluster once. It lists, page by page, and does not watch: that
// takes no more rights than necessary, each kind is consistent in itself, and
// it ends by itself. Only what is kept of a page outlives it.
//
// Kinds that the user may not list are in [State.Missing]; kinds that the
// server does not serve cannot exist. Anything else that goes wrong is an
// error.
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for k := range kindCount {
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

// state is an empty state of the server.
func (d *discovered) state(host string) *State {
	s := newState()
	s.fromCluster, s.facts.complete = true, true
	s.Origin = "cluster " + host
	s.Resources = d.resources
	s.setVersion(d.version)
	return s
}

// reporter makes progress callable concurrently, and counts.
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
	version, how, reason := d.serves(k)
	switch how {
	case notServed:
		return nil
	case unreadable:
		l.state.miss(k, reason)
		return nil
	}
	e, err := l.client.endpoint(k, version)
	if err != nil {
		return err
	}
	for range listAttempts {
		if err = l.pages(ctx, e); !apierrors.IsResourceExpired(err) {
			break
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		l.state.miss(k, missingReason("list", e.resource.GroupResource(), err))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return l.client.explain(ctx, "list "+e.resource.GroupResource().String()+" of", err)
	}
	if k.describe().rbac {
		l.state.rbacRead(k)
	}
	return nil
}

// pages takes all pages of a list into the state. While one is taken in, the
// next is already on its way.
func (l *lister) pages(ctx context.Context, e *endpoint) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		list runtime.Object
		err  error
	}
	pages := make(chan result)
	go func() {
		defer close(pages)
		for opts := (metav1.ListOptions{Limit: pageSize}); ; {
			list, err := e.page(ctx, opts)
			select {
			case pages <- result{list, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			if opts.Continue = continuation(list); opts.Continue == "" {
				return
			}
		}
	}()
	listed := listing{state: l.state, kind: e.kind, keys: map[objectKey]struct{}{}}
	l.state.retained.reset(e.kind)
	for page := range pages {
		if page.err != nil {
			return page.err
		}
		before := listed.count
		if err := listed.add(page.list); err != nil {
			return err
		}
		l.report(e.resource.Resource, int64(listed.count), remaining(page.list), listed.count-before)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	listed.end()
	return nil
}

// listing takes the objects of a list into the state and remembers their names,
// so that at the end those that are not listed can be taken out.
type listing struct {
	state *State
	kind  kind
	keys  map[objectKey]struct{}
	count int
}

// add takes a page in.
func (l *listing) add(page runtime.Object) error {
	return meta.EachListItem(page, func(item runtime.Object) error {
		_, err := l.addObject(item)
		return err
	})
}

func (l *listing) addObject(item runtime.Object) (objectKey, error) {
	key, err := l.state.takeSent(l.kind, item)
	if key.name != "" {
		l.keys[key] = struct{}{}
		l.count++
	}
	return key, err
}

// end takes out what was not listed.
func (l *listing) end() { l.state.sweep(l.kind, l.keys) }

// takeSent takes an object as an API server sent it. The key is empty if the
// object is of another kind.
func (s *State) takeSent(k kind, sent runtime.Object) (objectKey, error) {
	m, err := meta.Accessor(sent)
	if err != nil {
		return objectKey{}, err
	}
	version := s.objects.stampOf(m) // before the object is trimmed
	o, err := current(sent)
	if err != nil {
		return objectKey{}, err
	}
	return keyOf(o.GetNamespace(), o.GetName()), s.take(k, o, version)
}

// take sets an object of a cluster and retains it if that was asked for.
func (s *State) take(k kind, o apiObject, version stamp) error {
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

// unkeptError is about one object that could not be kept whole. Its relations
// are known.
type unkeptError struct{ error }

func (e *unkeptError) Unwrap() error { return e.error }

// rbacRead records that a kind of RBAC objects was read, though there may be
// none.
func (s *State) rbacRead(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.rbacRead |= 1 << k
}

func continuation(list runtime.Object) string {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return m.GetContinue()
}

// remaining is how many objects the server says will follow; 0 on the last
// page, -1 when it does not say.
func remaining(list runtime.Object) int64 {
	m, err := meta.ListAccessor(list)
	switch {
	case err != nil:
		return -1
	case m.GetContinue() == "":
		return 0
	case m.GetRemainingItemCount() == nil:
		return -1
	}
	return *m.GetRemainingItemCount()
}
