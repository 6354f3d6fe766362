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
	// waiting are the kinds that have neither been read nor turned out to be
	// unreadable, with what went wrong last.
	waiting map[kind]error
	watched map[kind]*watchedKind
	synced  chan struct{} // closed when waiting is empty
	// epoch ends when the state is dropped.
	epoch  *epoch
	resets uint64
	// ages are until when each kind may be used, read without the lock.
	ages *staleness.Deadlines
}

// Watch begins to follow a cluster. It returns when the server has told its
// version and resources; [Live.WaitSynced] waits for the objects.
//
// Each kind is streamed if the server can (WatchList, on by default since
// Kubernetes 1.34), else listed page by page, and watched from there on.
// Objects go into the state one by one; only names are held besides. A kind
// that may not be read is in [State.Missing] and is tried again now and then,
// as is one that is not served.
//
// When a right is lost on the way, the state keeps what it knew of the kind, and
// its age grows: see [Live.TooOld]. With a MaxStaleness, each kind is also
// compared with a list from time to time, and the state is dropped and read anew
// when the API server turns out to have another history: see [LiveOptions].Reset.
func Watch(ctx context.Context, cfg *rest.Config, opts LiveOptions) (*Live, error) {
	if opts.Retain {
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
		cancel: cancel, waiting: map[kind]error{}, watched: map[kind]*watchedKind{}, synced: make(chan struct{}),
		epoch: newEpoch(ctx), ages: staleness.NewDeadlines(int(kindCount), opts.now()),
	}
	for k := range kindCount {
		if !opts.WithoutRBAC || !k.describe().rbac {
			l.waiting[k] = nil
			l.watched[k] = &watchedKind{Watched: Watched{Resource: k.describe().groupResource()}}
		}
	}
	for k := range l.watched {
		l.wg.Go(func() { l.follow(ctx, d, k) })
	}
	if opts.MaxStaleness > 0 {
		l.wg.Go(func() { l.reportAges(ctx) })
		l.wg.Go(func() { l.identify(ctx) })
	}
	return l, nil
}

// State returns the state, which goes on to change. Until [Live.Synced] it is
// incomplete.
func (l *Live) State() *State { return l.state }

// Synced reports whether all kinds that can be read have been.
func (l *Live) Synced() bool {
	select {
	case <-l.synced:
		return true
	default:
		return false
	}
}

// WaitSynced returns when [Live.Synced] is true. When the context ends first, it
// returns an error that names what is still waited for, and why.
func (l *Live) WaitSynced(ctx context.Context) error {
	select {
	case <-l.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read cluster %s: %w while waiting for %s", l.client.host, context.Cause(ctx), l.waitsFor())
	}
}

// waitsFor lists resources with their last error.
func (l *Live) waitsFor() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for k, err := range l.waiting {
		part := k.describe().groupResource().String()
		if err != nil {
			part += " (" + err.Error() + ")"
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Stop ends the watching and waits for it to end. The state stays as it is.
func (l *Live) Stop() {
	l.cancel()
	l.wg.Wait()
}

// follow keeps one kind up to date.
func (l *Live) follow(ctx context.Context, d *discovered, k kind) {
	backoff := l.opts.backoff()
	for ctx.Err() == nil {
		begin, e := time.Now(), l.currentEpoch()
		if d == nil {
			var err error
			if d, err = l.client.discover(e.ctx); err != nil {
				l.failed(k, err)
			}
		}
		if d != nil {
			l.reflect(e, d, k)
			d = nil // may have changed when it matters again
		}
		if time.Since(begin) > backoff.Cap || e.ctx.Err() != nil {
			backoff = l.opts.backoff() // it worked for a while, or the state is read anew
		}
		select {
		case <-time.After(backoff.Step()):
		case <-e.ctx.Done():
		}
	}
}

// backoff is how long after a failure a kind is tried again: longer each
// time, up to the cap.
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

// reflect reads a kind until it cannot be read any more.
func (l *Live) reflect(in *epoch, d *discovered, k kind) {
	version, how, reason := d.serves(k)
	switch how {
	case notServed:
		l.restored(k)
		l.gone(in, k)
		return
	case unreadable:
		l.missing(in, k, reason)
		return
	}
	e, err := l.client.endpoint(k, version)
	if err != nil {
		l.failed(k, err)
		return
	}
	ctx, cancel := context.WithCancel(in.ctx)
	defer cancel()
	t := &tap{live: l, epoch: in, endpoint: e, stop: cancel, doubts: make(chan doubt, 1)}
	defer t.close()
	if l.opts.MaxStaleness > 0 {
		var checking sync.WaitGroup
		defer checking.Wait()
		defer cancel()
		checking.Go(func() { newChecker(t).run(ctx) })
	}
	discard := logr.Discard()
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: t.list, WatchFuncWithContext: t.watch},
		nil, noStore{}, cache.ReflectorOptions{Name: e.resource.Resource, TypeDescription: k.String(), Logger: &discard, Backoff: l.opts.retry})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
}

// failed notes what went wrong with a kind, and that it may be why the kind is
// still waited for.
func (l *Live) failed(k kind, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[k].Errors++
	l.watched[k].Err = err
	if _, waits := l.waiting[k]; waits {
		l.waiting[k] = err
	}
}

// settled notes that a kind need not be waited for.
func (l *Live) settled(k kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waits := l.waiting[k]; !waits {
		return
	}
	if delete(l.waiting, k); len(l.waiting) == 0 {
		close(l.synced)
	}
}

// missing notes that a kind cannot be read; the first time it says so.
func (l *Live) missing(e *epoch, k kind, reason string) {
	if m, changed := l.state.miss(k, reason); changed && l.opts.MissingChanged != nil {
		l.opts.MissingChanged(m, true)
	}
	l.mu.Lock()
	if f := l.kindOf(e, k); f != nil {
		f.Following, f.Err = Unreadable, errors.New(reason)
	}
	l.mu.Unlock()
	l.settled(k)
}

// absent notes that the server does not know the resource of a kind.
func (l *Live) absent(e *epoch, k kind) {
	l.following(e, k, NotServed)
	l.settled(k)
}

// gone notes that the server does not list a kind among its resources: there are
// no objects of it.
func (l *Live) gone(e *epoch, k kind) {
	l.state.sweep(k, nil)
	l.mu.Lock()
	if f := l.kindOf(e, k); f != nil {
		f.heard, f.proven, f.listed, f.dropped = time.Time{}, time.Time{}, time.Time{}, false
		l.ages.Forget(int(k))
	}
	l.mu.Unlock()
	l.absent(e, k)
}

// restored notes that a kind can be read.
func (l *Live) restored(k kind) {
	if m, changed := l.state.found(k); changed && l.opts.MissingChanged != nil {
		l.opts.MissingChanged(m, false)
	}
}

// noStore is where a reflector puts objects that its tap has dealt with.
type noStore struct{}

func (noStore) Add(any) error               { return nil }
func (noStore) Update(any) error            { return nil }
func (noStore) Delete(any) error            { return nil }
func (noStore) Replace([]any, string) error { return nil }
func (noStore) Resync() error               { return nil }
