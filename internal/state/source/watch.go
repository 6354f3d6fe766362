package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Live is a state that follows a cluster until it is stopped.
type Live struct {
	state  *State
	client *client
	opts   LiveOptions
	report func(source string, done, remaining int64, kept int)
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu sync.Mutex
	// pending are the kinds that are neither synced nor known to be unreadable, with
	// their last error.
	pending  map[kind]error
	statuses map[kind]*kindStatus
	synced   chan struct{} // closed when pending is empty
	// epoch ends when the state is dropped.
	epoch  *epoch
	resets uint64
	// ages holds the deadline of each kind: until then it may be used. Read without
	// the lock.
	ages *staleness.Deadlines
}

// Watch starts to follow a cluster. It returns when the server's version and
// resources are discovered; [Live.WaitSynced] waits for the objects.
//
// Each kind is streamed if the server can (WatchList, on by default since Kubernetes
// 1.34), else listed page by page, and watched from there on. Objects are applied to
// the state one by one; apart from the state, only names are held in memory. A kind
// that may not be read is in [State.Missing]. It is retried from time to time, as is
// a kind that is not served.
//
// When a right is revoked, the state keeps the objects of the kind, and their age
// grows: see [Live.TooOld]. With a MaxStaleness, each kind is also compared with a
// list from time to time. The state is dropped and listed again when the API server's
// store was restored or replaced: see [LiveOptions].Reset.
func Watch(ctx context.Context, cfg *rest.Config, opts LiveOptions) (*Live, error) {
	if opts.Retain || opts.Inventory {
		return nil, errors.New("watch cluster: objects of a live state are not retained")
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	// Reflectors log each failure, retries included; taps report it instead.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	l := &Live{
		state: d.state(c.host), client: c, opts: opts, report: reporter(opts.Progress),
		cancel: cancel, pending: map[kind]error{}, statuses: map[kind]*kindStatus{}, synced: make(chan struct{}),
		epoch: newEpoch(ctx), ages: staleness.NewDeadlines(int(kindCount), opts.now()),
	}
	for k := range kindCount {
		if opts.follows(k) {
			l.pending[k] = nil
			l.statuses[k] = &kindStatus{Watched: Watched{Resource: k.describe().groupResource()}}
		}
	}
	for k := range l.statuses {
		l.wg.Go(func() { l.follow(ctx, d, k) })
	}
	if opts.MaxStaleness > 0 {
		l.wg.Go(func() { l.reportAges(ctx) })
		l.wg.Go(func() { l.watchClusterUID(ctx) })
	}
	return l, nil
}

// follows reports whether [Watch] reads a kind.
func (o LiveOptions) follows(k kind) bool {
	switch info := k.describe(); {
	case k == kindAPIService:
		return o.APIServices
	case info.rbac:
		return !o.WithoutRBAC
	default:
		return !info.inventory && !info.containment
	}
}

// State returns the state, which keeps changing. Until [Live.Synced] it is
// incomplete.
func (l *Live) State() *State { return l.state }

// Synced reports whether all readable kinds have been listed.
func (l *Live) Synced() bool {
	select {
	case <-l.synced:
		return true
	default:
		return false
	}
}

// WaitSynced returns when [Live.Synced] is true. When the context ends first, it
// returns an error that names the pending resources and their last errors.
func (l *Live) WaitSynced(ctx context.Context) error {
	select {
	case <-l.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read cluster %s: %w while waiting for %s", l.client.host, context.Cause(ctx), l.pendingKinds())
	}
}

// pendingKinds lists the pending resources with their last errors.
func (l *Live) pendingKinds() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for k, err := range l.pending {
		part := k.describe().groupResource().String()
		if err != nil {
			part += " (" + err.Error() + ")"
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Stop ends all watches and waits until they have ended. The state does not change
// afterwards.
func (l *Live) Stop() {
	l.cancel()
	l.wg.Wait()
}

// follow keeps one kind up to date.
func (l *Live) follow(ctx context.Context, d *discovered, k kind) {
	backoff := l.opts.backoff()
	for ctx.Err() == nil {
		start, e := time.Now(), l.currentEpoch()
		if d == nil {
			var err error
			if d, err = l.client.discover(e.ctx); err != nil {
				l.recordError(k, err)
			}
		}
		if d != nil {
			l.reflect(e, d, k)
			d = nil // rediscover before the next attempt
		}
		if time.Since(start) > backoff.Cap || e.ctx.Err() != nil {
			backoff = l.opts.backoff() // it worked for a while, or the state is listed again
		}
		select {
		case <-time.After(backoff.Step()):
		case <-e.ctx.Done():
		}
	}
}

// backoff is the delay before a kind is retried after a failure.
func (o LiveOptions) backoff() wait.Backoff {
	if o.retry != nil {
		return *o.retry
	}
	return wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 2 * time.Minute}
}

func (o LiveOptions) now() func() time.Time {
	if o.clock != nil {
		return o.clock
	}
	return time.Now
}

// reflect runs a reflector for a kind until the kind becomes unreadable or the epoch
// ends.
func (l *Live) reflect(in *epoch, d *discovered, k kind) {
	version, how, reason := d.serves(k)
	switch how {
	case notServed:
		l.markReadable(k)
		l.clearKind(in, k)
		return
	case unreadable:
		l.markUnreadable(in, k, reason)
		return
	}
	e, err := l.client.endpoint(k, version)
	if err != nil {
		l.recordError(k, err)
		return
	}
	ctx, cancel := context.WithCancel(in.ctx)
	defer cancel()
	lw := &listWatcher{live: l, epoch: in, endpoint: e, stop: cancel, anomalies: make(chan anomaly, 1)}
	defer lw.close()
	if l.opts.MaxStaleness > 0 {
		var checks sync.WaitGroup
		defer checks.Wait()
		defer cancel()
		checks.Go(func() { newChecker(lw).run(ctx) })
	}
	discard := logr.Discard()
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: lw.list, WatchFuncWithContext: lw.watch},
		nil, noStore{}, cache.ReflectorOptions{
			Name: e.resource.Resource, TypeDescription: k.String(), Logger: &discard, Backoff: l.opts.retry,
		})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
}

// recordError records an error of a kind; if the kind is pending, also as the reason.
func (l *Live) recordError(k kind, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[k].Errors++
	l.statuses[k].Err = err
	if _, pending := l.pending[k]; pending {
		l.pending[k] = err
	}
}

// markSettled removes a kind from the pending ones.
func (l *Live) markSettled(k kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, pending := l.pending[k]; !pending {
		return
	}
	if delete(l.pending, k); len(l.pending) == 0 {
		close(l.synced)
	}
}

// markUnreadable records that a kind cannot be read, and reports it the first time.
func (l *Live) markUnreadable(e *epoch, k kind, reason string) {
	if m, changed := l.state.markMissing(k, reason); changed && l.opts.MissingChanged != nil {
		l.opts.MissingChanged(m, true)
	}
	l.change(e, k, func(f *kindStatus) { f.Following, f.Err = Unreadable, errors.New(reason) })
	l.markSettled(k)
}

// markNotServed records that the server does not serve the resource of a kind.
func (l *Live) markNotServed(e *epoch, k kind) {
	l.setFollowing(e, k, NotServed)
	l.markSettled(k)
}

// clearKind removes all objects of a kind that discovery does not list.
func (l *Live) clearKind(e *epoch, k kind) {
	l.state.sweep(k, nil)
	l.change(e, k, func(f *kindStatus) {
		f.observed, f.confirmed, f.listed, f.dropped = time.Time{}, time.Time{}, time.Time{}, false
		l.ages.Forget(int(k))
	})
	l.markNotServed(e, k)
}

// markReadable records that a kind can be read again, and reports the change.
func (l *Live) markReadable(k kind) {
	if m, changed := l.state.clearMissing(k); changed && l.opts.MissingChanged != nil {
		l.opts.MissingChanged(m, false)
	}
}

// noStore is the store of a reflector whose listWatcher has already applied the
// objects.
type noStore struct{}

func (noStore) Add(any) error               { return nil }
func (noStore) Update(any) error            { return nil }
func (noStore) Delete(any) error            { return nil }
func (noStore) Replace([]any, string) error { return nil }
func (noStore) Resync() error               { return nil }
