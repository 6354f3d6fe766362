package freshness

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Cluster is the state that lags behind the API server, such as the state of package source.
type Cluster interface {
	// OnChange calls f after each change of the state with the node that the change
	// concerns, or with the empty name if it could concern any node.
	OnChange(f func(node string)) (stop func())
	// KnowsNode reports whether the cluster has the node, or an object that is related to
	// it.
	KnowsNode(name string) bool
}

// The default limits. By its own default, a kubelet sends at most 100 requests in a burst.
const (
	DefaultMaxPerNode = 256
	DefaultMaxTotal   = 4096
)

// Options configure a Waiter. The zero value means the defaults.
type Options struct {
	// Synced reports whether the state has been read completely. It is not called again
	// after it has returned true. Nil means that the state is complete.
	Synced func() bool
	// MaxPerNode and MaxTotal limit how many requests of one node and of all nodes may
	// wait at once, of each kind. The oldest is answered when there are more. Service accounts
	// together have half of the places, and each a quarter.
	MaxPerNode, MaxTotal int
	// Waited, if set, is called after each wait with the kind of question ("authorize",
	// "admit"), the outcome of the wait and its duration.
	Waited func(kind, outcome string, took time.Duration)
}

// The outcomes of a wait.
const (
	// Arrived: the new answer is not one that a lag could explain.
	Arrived = "arrived"
	// Expired: the time limit passed, and the refusal stands.
	Expired = "expired"
	// Canceled: the request's context ended.
	Canceled = "canceled"
	// Limited: too many requests wait; as the oldest of them, this one gave way to a new one.
	Limited = "limited"
)

// The kinds of questions.
const (
	kindAuthorize = "authorize"
	kindAdmit     = "admit"
)

// Waiter makes requests wait whose refusal a lag could explain. Create one with New; it is
// safe for concurrent use.
type Waiter struct {
	cluster Cluster
	opts    Options
	synced  atomic.Bool // opts.Synced has returned true
	stop    func()
	// Access reviews and admission have places of their own: users who may create SubjectAccessReviews can
	// cause any number of the former, for any node.
	authorize, admit *queues
}

// New returns a Waiter that follows the cluster's changes until it is stopped.
func New(cluster Cluster, opts Options) *Waiter {
	opts.MaxPerNode = cmp.Or(opts.MaxPerNode, DefaultMaxPerNode)
	opts.MaxTotal = cmp.Or(opts.MaxTotal, DefaultMaxTotal)
	if opts.Waited == nil {
		opts.Waited = func(string, string, time.Duration) {}
	}
	w := &Waiter{
		cluster: cluster, opts: opts,
		authorize: newQueues(opts.MaxPerNode, opts.MaxTotal), admit: newQueues(opts.MaxPerNode, opts.MaxTotal),
	}
	w.stop = cluster.OnChange(func(node string) {
		w.authorize.changed(node)
		w.admit.changed(node)
	})
	return w
}

// Stop unsubscribes from changes. Requests that wait do so until their time limit.
func (w *Waiter) Stop() { w.stop() }

// complete reports whether the state is complete. It is called before the evaluator is, so
// that the evaluator's answer is based on the complete state.
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

// asker is who asks: a node, or a service account on it.
type asker struct{ node, account string }

func askerOf(node, user string) asker {
	if _, _, account := nodeidentity.ServiceAccount(user); account {
		return asker{node, user}
	}
	return asker{node: node}
}

// wait makes a request of a node wait, at most for the given time. It calls ask whenever the
// answer may have changed, until ask returns false: the answer is not stale. If the question
// has a probe, ask is only called after the probe returned true.
func (w *Waiter) wait(ctx context.Context, kind string, of asker, limit time.Duration, q *question, ask func() (stale bool)) {
	if !w.cluster.KnowsNode(of.node) {
		return
	}
	queues := w.authorize
	if kind == kindAdmit {
		queues = w.admit
	}
	begin := time.Now()
	t := queues.enter(of.node, of.account, q)
	defer queues.leave(t)
	w.opts.Waited(kind, t.await(ctx, limit, ask), time.Since(begin))
}

// await waits until ask returns false or the wait ends, and returns its outcome.
func (t *waiter) await(ctx context.Context, limit time.Duration, ask func() (stale bool)) (outcome string) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-t.wake:
			if !ask() {
				return Arrived
			}
		case <-t.gaveWay:
			if len(t.wake) > 0 && !ask() { // a change came before
				return Arrived
			}
			return Limited
		case <-timer.C:
			return Expired
		case <-ctx.Done():
			return Canceled
		}
	}
}
