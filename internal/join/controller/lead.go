package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// queue holds the names of objects to process, each once. Failed objects are retried later.
type queue = workqueue.TypedRateLimitingInterface[string]

const (
	// firstDelay and longestDelay are the delays before a retry.
	firstDelay   = 50 * time.Millisecond
	longestDelay = 5 * time.Second
	// tryLimit limits the time of a try. A worker does not wait longer for an answer that was lost.
	tryLimit = 10 * time.Second
)

// term holds the queues of one term as leader.
type term struct {
	requests, entries queue
}

func newTerm() *term {
	newQueue := func() queue {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, longestDelay)
		return workqueue.NewTypedRateLimitingQueue(limiter)
	}
	return &term{requests: newQueue(), entries: newQueue()}
}

func (t *term) addEntries(entries []*v1alpha1.NodeAttestation) {
	for _, e := range entries {
		t.entries.Add(e.Name)
	}
}

func (t *term) shutDown() {
	t.requests.ShutDown()
	t.entries.ShutDown()
}

// elect takes part in the election, and again after it has lost the lease.
func (c *Controller) elect(ctx context.Context) error {
	var leading sync.WaitGroup
	defer leading.Wait()
	e := &c.opts.LeaderElection
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.Name,
		Lock: limitedLock{&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
			Client:     c.opts.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.opts.Identity},
		}, e.RenewDeadline.Duration / 2},
		LeaseDuration: e.LeaseDuration.Duration, RenewDeadline: e.RenewDeadline.Duration, RetryPeriod: e.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			// The elector calls this in a goroutine of its own, and ends its context.
			OnStartedLeading: func(ctx context.Context) { leading.Go(func() { c.lead(ctx) }) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("start the election of the leading approver: %w", err)
	}
	for ctx.Err() == nil {
		elector.Run(ctx)
		leading.Wait()
	}
	return nil
}

// lead processes all objects, and then all changes, until the context ends.
func (c *Controller) lead(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	t := newTerm()
	c.term.Store(t)
	c.opts.Observer.Leading(true)
	defer c.opts.Observer.Leading(false)
	defer c.term.CompareAndSwap(t, nil)
	context.AfterFunc(ctx, t.shutDown)
	for _, object := range c.requests.List() {
		c.requestChanged(object.(*request))
	}
	t.addEntries(c.opts.Known.All())

	var workers sync.WaitGroup
	defer workers.Wait()
	for range c.opts.Workers {
		workers.Go(func() { c.work(ctx, t.requests, c.decide) })
	}
	workers.Go(func() { c.work(ctx, t.entries, c.record) })
	workers.Go(func() { c.listing.run(ctx) })
}

// work processes the names in the queue until the queue is shut down.
func (c *Controller) work(ctx context.Context, q queue, process func(context.Context, string) error) {
	for {
		name, ended := q.Get()
		if ended {
			return
		}
		switch err := try(ctx, name, process); {
		case ctx.Err() != nil:
		case err != nil:
			if !expected(err) {
				c.opts.Logger.Info("trying again later", "cause", oneLine(cut(err.Error(), maxConditionMessage)))
			}
			q.AddRateLimited(name)
		default:
			q.Forget(name)
		}
		q.Done(name)
	}
}

// try processes one name within tryLimit.
func try(ctx context.Context, name string, process func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	return process(ctx, name)
}

// expected reports whether an error needs no log line: another client was faster, this approver
// was faster than the cache, the cache is too old, which is reported once for all requests, or other
// requests wait for DNS.
func expected(err error) bool {
	return isTooOld(err) || apierrors.IsConflict(err) || errors.Is(err, errBehind) || errors.Is(err, errResolving)
}

// limitedLock limits the time of requests for the lease. A candidate whose request is not answered
// would not try again before the request ends.
type limitedLock struct {
	resourcelock.Interface
	limit time.Duration
}

// Get reads the lease.
func (l limitedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Interface.Get(ctx)
}

// Create creates the lease.
func (l limitedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Interface.Create(ctx, record)
}

// Update writes the lease.
func (l limitedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Interface.Update(ctx, record)
}
