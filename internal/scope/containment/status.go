package containment

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Limits of writes. The log and the metrics do not depend on them.
const (
	statusAtOnce = 100
	// statusInterval is the time between writes after that.
	statusInterval = 50 * time.Millisecond
	// statusAgain is how often the same status of an object is written without a pause, although others write
	// another one: a server that knew less may have written it. After that there is statusPause between two
	// writes. A server of another version may always want another status.
	statusAgain = 10
	statusPause = time.Minute
	// statusRetry is the first pause after a failure. The others double, up to statusPause.
	statusRetry = time.Second
)

// status returns the status that an object should have.
func (o *outcome) status(now time.Time) status {
	c := metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation,
		Reason: string(o.Code), Message: o.Message, LastTransitionTime: metav1.NewTime(now),
	}
	if o.Code == Accepted {
		c.Status = metav1.ConditionTrue
	}
	if was := &o.object.status.condition; was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return status{o.Generation, c}
}

// says reports whether a status is another one, except for its time. A quarantine that a server
// saw expire stays expired, although clocks differ.
func (s status) says(to status) bool {
	is, want := &s.condition, &to.condition
	if s.observed != to.observed || is.ObservedGeneration != want.ObservedGeneration {
		return false
	}
	return is.Reason == string(Expired) && want.Reason == string(Accepted) ||
		is.Status == want.Status && is.Reason == want.Reason && is.Message == want.Message
}

// writer writes statuses. All servers want to write the same; the API server accepts the first
// write, because each demands the version that was read.
type writer struct {
	client   *client
	current  func(name string) *object
	now      func() time.Time
	observer Observer
	limit    *rate.Limiter
	// queue has the names of objects whose status may have to be written.
	queue workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// wanted are the statuses that objects should have, by name.
	wanted map[string]*wanted
}

type wanted struct {
	version
	status
	// limit limits how often this status is written.
	limit *rate.Limiter
}

func newWriter(client *client, opts *Options, current func(string) *object) *writer {
	return &writer{
		client: client, current: current, now: opts.Now, observer: opts.Observer, wanted: map[string]*wanted{},
		limit: rate.NewLimiter(rate.Every(statusInterval), statusAtOnce),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](statusRetry, statusPause)),
	}
}

// want sets the statuses that all objects should have.
func (w *writer) want(outcomes []outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, next := w.now(), make(map[string]*wanted, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		to := w.wanted[o.Name]
		if status := o.status(now); to == nil || to.version != o.version() || !to.says(status) {
			to = &wanted{o.version(), status, rate.NewLimiter(rate.Every(statusPause), statusAgain)}
		}
		if next[o.Name] = to; !o.object.status.says(to.status) {
			w.queue.Add(o.Name)
		}
	}
	w.wanted = next
}

// run writes until the context ends.
func (w *writer) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	for {
		name, ended := w.queue.Get()
		if ended {
			return
		}
		w.write(ctx, name)
		w.queue.Done(name)
	}
}

func (w *writer) write(ctx context.Context, name string) {
	w.mu.Lock()
	to := w.wanted[name]
	w.mu.Unlock()
	is := w.current(name)
	if is == nil || to == nil || is.version() != to.version || is.status.says(to.status) {
		w.queue.Forget(name)
		return
	}
	if again := to.limit.Reserve(); again.Delay() > 0 {
		w.queue.AddAfter(name, again.Delay())
		again.Cancel()
		return
	}
	if w.limit.Wait(ctx) != nil {
		return
	}
	err := w.client.writeStatus(ctx, is, to.status)
	switch {
	case err == nil:
		w.queue.Forget(name)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // a change comes, after which a status is wanted again
	case ctx.Err() == nil:
		w.observer.ContainmentWriteFailed(err)
		w.queue.AddRateLimited(name)
	}
}

// notify wakes the reader of a channel with room for one value.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}
