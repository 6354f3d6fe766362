package containment

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Limits of writes. The log and the metrics do not depend on them.
const (
	statusAtOnce = 100
	// statusInterval is the time between writes after that.
	statusInterval = 50 * time.Millisecond
	// statusAgain is how often the same status of an object is written without a pause, although others write
	// another one: a server that knew less may have written it. After that, and after a failure, there is
	// statusPause between two writes. A server of another version may always want another status.
	statusAgain = 10
	statusPause = time.Minute
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
	wake     chan struct{}

	mu sync.Mutex
	// wanted are the statuses that objects should have, by name.
	wanted map[string]wanted
	// pending are the names of objects whose status may have to be written.
	pending map[string]bool
	// attempts are the last writes.
	attempts map[types.UID]attempt
}

type wanted struct {
	version
	status
}

// attempt is the last write of a status.
type attempt struct {
	wrote status
	at    time.Time
	// times is how often it was written, or statusAgain if that failed.
	times int
}

// due returns how long to wait until a status may be written.
func (a attempt) due(to status, now time.Time) time.Duration {
	if a.times < statusAgain || !a.wrote.says(to) {
		return 0
	}
	return max(a.at.Add(statusPause).Sub(now), 0)
}

// next returns the attempt after one more write.
func (a attempt) next(wrote status, now time.Time, err error) attempt {
	switch {
	case err != nil:
		a.times = statusAgain
	case !a.wrote.says(wrote), now.Sub(a.at) >= statusPause:
		a.times = 1
	default:
		a.times++
	}
	return attempt{wrote, now, a.times}
}

func newWriter(client *client, opts *Options, current func(string) *object) *writer {
	return &writer{
		client: client, current: current, now: opts.Now, observer: opts.Observer,
		limit: rate.NewLimiter(rate.Every(statusInterval), statusAtOnce), wake: make(chan struct{}, 1),
		wanted: map[string]wanted{}, pending: map[string]bool{}, attempts: map[types.UID]attempt{},
	}
}

// want sets the statuses that all objects should have.
func (w *writer) want(outcomes []outcome) {
	now := w.now()
	next, pending, known := make(map[string]wanted, len(outcomes)), map[string]bool{}, map[types.UID]bool{}
	for i := range outcomes {
		o := &outcomes[i]
		to := o.status(now)
		next[o.Name] = wanted{o.version(), to}
		if known[o.UID] = true; !o.object.status.says(to) {
			pending[o.Name] = true
		}
	}
	w.mu.Lock()
	w.wanted, w.pending = next, pending
	maps.DeleteFunc(w.attempts, func(uid types.UID, _ attempt) bool { return !known[uid] })
	w.mu.Unlock()
	notify(w.wake)
}

// run writes until the context ends.
func (w *writer) run(ctx context.Context) {
	for {
		name, pause := w.next()
		if name == "" {
			w.wait(ctx, pause)
		} else if w.limit.Wait(ctx) == nil {
			w.write(ctx, name)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (w *writer) wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next returns the name of an object whose status may be written now, or how long to wait.
func (w *writer) next() (name string, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, pause := w.now(), statusPause
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		to := w.wanted[name]
		due := w.attempts[to.uid].due(to.status, now)
		if due == 0 {
			return name, 0
		}
		pause = min(pause, due)
	}
	return "", pause
}

func (w *writer) write(ctx context.Context, name string) {
	is := w.current(name)
	w.mu.Lock()
	to := w.wanted[name]
	if is == nil || is.version() != to.version || is.status.says(to.status) {
		delete(w.pending, name)
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	err := w.client.writeStatus(ctx, is, to.status)
	conflict := apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	if err != nil && !conflict && ctx.Err() == nil {
		w.observer.ContainmentWriteFailed(err)
	}
	unchanged := w.current(name) == is
	w.mu.Lock()
	defer w.mu.Unlock()
	if !conflict {
		w.attempts[to.uid] = w.attempts[to.uid].next(to.status, w.now(), err)
	}
	// What is wanted may have changed during the write; then the object is pending again.
	same := w.wanted[name].version == to.version && w.wanted[name].says(to.status)
	if same && (err == nil || conflict && unchanged) { // otherwise the change is not known yet, and comes
		delete(w.pending, name)
	}
}

// notify wakes the reader of a channel with room for one value.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}
