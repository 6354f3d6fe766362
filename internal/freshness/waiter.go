package freshness

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"
)

// Cluster is the state that lags. The state of package source is one.
type Cluster interface {
	// OnChange calls f after every change that the state shows, with the node
	// that it concerns, or with the empty name when it could concern any.
	OnChange(f func(node string)) (stop func())
	// KnowsNode reports whether the cluster has the node, or something is
	// related to it.
	KnowsNode(name string) bool
}

// The limits that hold when Options sets none. A kubelet sends at most 100
// requests in a burst, by its own default.
const (
	DefaultMaxPerNode = 256
	DefaultMaxTotal   = 4096
)

// Options say how a Waiter waits. The zero value has the defaults.
type Options struct {
	// Synced reports whether the state holds all that the cluster has. It is
	// asked until it has once said so. Nil: the state is complete.
	Synced func() bool
	// MaxPerNode is how many requests of one node may wait at once, MaxTotal how
	// many of all nodes. What comes beyond is answered at once.
	MaxPerNode, MaxTotal int
	// Waited, if set, is told of every wait: for which kind of question
	// ("authorize", "admit"), how it ended and how long it took.
	Waited func(kind, outcome string, took time.Duration)
}

// How a wait ends.
const (
	// Arrived: the answer is not one that lag could explain any more.
	Arrived = "arrived"
	// Expired: the time was up, and the refusal stands.
	Expired = "expired"
	// Canceled: the request's context ended.
	Canceled = "canceled"
	// Limited: the node has too many requests waiting; there was no wait.
	Limited = "limited"
)

// The kinds of questions.
const (
	kindAuthorize = "authorize"
	kindAdmit     = "admit"
)

// Waiter holds back refusals that a lag could explain. Create one with New; it
// is safe for concurrent use.
type Waiter struct {
	cluster Cluster
	opts    Options
	synced  atomic.Bool // opts.Synced was true once
	stop    func()
	queues  *queues
}

// New returns a Waiter that follows the cluster's changes until it is stopped.
func New(cluster Cluster, opts Options) *Waiter {
	opts.MaxPerNode = cmp.Or(opts.MaxPerNode, DefaultMaxPerNode)
	opts.MaxTotal = cmp.Or(opts.MaxTotal, DefaultMaxTotal)
	if opts.Waited == nil {
		opts.Waited = func(string, string, time.Duration) {}
	}
	w := &Waiter{cluster: cluster, opts: opts, queues: newQueues(opts.MaxPerNode, opts.MaxTotal)}
	w.stop = cluster.OnChange(w.queues.changed)
	return w
}

// Stop ends the following of changes. Requests that wait do so until their time
// is up.
func (w *Waiter) Stop() { w.stop() }

// complete reports whether the state is complete. It is asked before a question
// is put to the evaluator: what the evaluator then says is about all there is.
func (w *Waiter) complete() bool {
	if w.synced.Load() {
		return true
	}
	if w.opts.Synced != nil && !w.opts.Synced() {
		return false
	}
	w.synced.Store(true)
	return true
}

// hold lets a request of a node wait, at most for the given time, and calls ask
// whenever its answer may have changed, until that returns false: the answer is
// not stale any more. The question's probe, if it has one, says when asking is
// worth it.
func (w *Waiter) hold(ctx context.Context, kind, node string, limit time.Duration, q *question, ask func() (stale bool)) {
	if !w.cluster.KnowsNode(node) {
		return
	}
	begin := time.Now()
	t := w.queues.enter(node, q)
	if t == nil {
		w.opts.Waited(kind, Limited, 0)
		return
	}
	defer w.queues.leave(t)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	outcome := ""
	for outcome == "" {
		select {
		case <-t.wake:
			if !ask() {
				outcome = Arrived
			}
		case <-timer.C:
			outcome = Expired
		case <-ctx.Done():
			outcome = Canceled
		}
	}
	w.opts.Waited(kind, outcome, time.Since(begin))
}
