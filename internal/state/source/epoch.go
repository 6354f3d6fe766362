package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// epoch is the time in which an API server has one store: until the store turns out
// to have been replaced, or restored to an older state.
type epoch struct {
	ctx    context.Context
	cancel context.CancelFunc
	// parent is the context of all epochs.
	parent context.Context
}

func newEpoch(parent context.Context) *epoch {
	ctx, cancel := context.WithCancel(parent)
	return &epoch{ctx: ctx, cancel: cancel, parent: parent}
}

func (l *Live) currentEpoch() *epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// reset drops the state, once per epoch: no kind may be used until it has been listed
// again. That list also removes objects that no longer exist.
func (l *Live) reset(e *epoch, cause string) {
	l.mu.Lock()
	if e != l.epoch {
		l.mu.Unlock()
		return
	}
	l.epoch = newEpoch(e.parent)
	l.resets++
	for k, f := range l.statuses {
		f.resourceVersion = ""
		if f.observed.IsZero() {
			continue
		}
		f.observed, f.confirmed, f.listed, f.dropped = time.Time{}, time.Time{}, time.Time{}, true
		f.Err = errors.New(cause)
		l.ages.End(int(k))
		if f.Following == Followed {
			f.Following = Reading
		}
	}
	l.mu.Unlock()
	e.cancel()
	if l.opts.Reset != nil {
		l.opts.Reset(cause)
	}
}

// Resets returns how often the state was dropped and listed again.
func (l *Live) Resets() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resets
}

// watchClusterUID reads the UID of the namespace kube-system from time to time, and
// resets the state when it changes: the namespace exists as long as its cluster.
// Errors are ignored, because the right to read the namespace is optional.
func (l *Live) watchClusterUID(ctx context.Context) {
	var known types.UID
	for {
		e := l.currentEpoch()
		uid, err := l.clusterUID(e.ctx)
		switch {
		case err != nil || uid == "":
		case known != "" && known != uid:
			l.reset(e, fmt.Sprintf("the namespace %s has another UID: %s instead of %s", metav1.NamespaceSystem, uid, known))
			known = uid
		default:
			known = uid
		}
		if !sleep(ctx, wait.Jitter(l.opts.MaxStaleness/probesPerAge, jitter)) {
			return
		}
	}
}

// clusterUID returns the UID of the namespace kube-system; empty if there is none.
func (l *Live) clusterUID(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, l.opts.MaxStaleness/probesPerAge)
	defer cancel()
	r, err := l.client.rest(schema.GroupVersion{Version: "v1"})
	if err != nil {
		return "", err
	}
	var namespace corev1.Namespace
	err = r.Get().Resource("namespaces").Name(metav1.NamespaceSystem).Do(ctx).Into(&namespace)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return namespace.UID, err
}

// sleep waits and returns false when the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reportAges reports once when a kind becomes too old, and once when it is fresh
// again.
func (l *Live) reportAges(ctx context.Context) {
	stale := map[kind]bool{}
	for sleep(ctx, min(time.Second, l.opts.MaxStaleness/probesPerAge)) {
		for _, w := range l.Resources() {
			if w.Stale == stale[w.kind] || w.Stale && w.Age == 0 {
				continue // a resource that is listed again has no age: the reset was reported
			}
			stale[w.kind] = w.Stale
			if l.opts.StaleChanged != nil {
				l.opts.StaleChanged(w, w.Stale)
			}
		}
	}
}
