package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

const (
	// listInterval is the time from the end of a list of the ledger to the next one. The owner of a
	// token or certificate that no entry names can create any number of requests.
	listInterval = time.Second
	// listLimit limits the time of a list.
	listLimit = 25 * time.Second
	// listLife is how old a list may be when a request is decided by it.
	listLife = 10 * time.Second
	// askedLists is for how many lists a waiting request is remembered. This is longer than the longest
	// delay of a retry.
	askedLists = 60
)

// listing lists the ledger in the API server to confirm that no entry has a token or a node name,
// because the cache may be behind. All requests share a list. A request does not block a worker
// while it waits: the list's end wakes it, so that requests do not miss the time for which a list is
// valid, however long lists take.
type listing struct {
	ledger *ledger.Client
	clock  func() time.Time
	// wake lets a request be decided again.
	wake func(request string)
	// needed holds one element if a list is needed.
	needed chan struct{}

	mu sync.Mutex
	// waiting holds the requests that need a list, by UID.
	waiting map[types.UID]waiting
	// started counts the lists that have started.
	started int
	// last is the last complete list, and failed the error of a later one.
	last   *listed
	failed error
}

// waiting is a request that needs a list which starts later than the first ones, as many as asked.
type waiting struct {
	request string
	asked   int
}

// listed is the result of one list.
type listed struct {
	// number counts lists from 1. endedAt is the time when the list ended.
	number  int
	endedAt time.Time
	tokens  map[string]bool
	nodes   map[string][]*v1alpha1.NodeAttestation
}

func newListing(ledger *ledger.Client, clock func() time.Time, wake func(request string)) *listing {
	return &listing{
		ledger: ledger, clock: clock, wake: wake, needed: make(chan struct{}, 1), waiting: map[types.UID]waiting{},
	}
}

// after returns a list of the ledger that started after the request asked first, and ended less
// than listLife ago. It returns errBehind if there is none yet. Each decision needs a new list:
// a request that has received one asks again.
func (l *listing) after(request metav1.Object) (*listed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, known := l.waiting[request.GetUID()]
	if !known {
		l.waiting[request.GetUID()] = waiting{request.GetName(), l.started}
		return nil, errBehind // usually the cache receives the entry before the retry
	}
	if l.last != nil && l.last.number > w.asked && l.clock().Sub(l.last.endedAt) < listLife {
		delete(l.waiting, request.GetUID())
		return l.last, nil
	}
	l.need()
	if l.failed != nil {
		return nil, l.failed
	}
	return nil, errBehind
}

// need requests a list, unless one is requested.
func (l *listing) need() {
	select {
	case l.needed <- struct{}{}:
	default:
	}
}

// run lists the ledger when a request needs it, until the context ends.
func (l *listing) run(ctx context.Context) {
	for {
		select {
		case <-l.needed:
		case <-ctx.Done():
			return
		}
		l.read(ctx)
		select {
		case <-time.After(listInterval):
		case <-ctx.Done():
			return
		}
	}
}

// read lists the ledger once, and wakes the requests that waited for it.
func (l *listing) read(ctx context.Context) {
	number := l.start()
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	list, err := l.ledger.List(ctx)
	for _, request := range l.end(number, list, err) {
		l.wake(request)
	}
}

func (l *listing) start() (number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started++
	// Remove requests that were deleted before they asked. Others ask again.
	maps.DeleteFunc(l.waiting, func(_ types.UID, w waiting) bool { return w.asked < l.started-askedLists })
	return l.started
}

// end keeps the result of a list, and returns the requests that waited for it. A list that failed is
// repeated.
func (l *listing) end(number int, list *v1alpha1.NodeAttestationList, err error) (waited []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed = err; err != nil {
		l.need()
		return nil
	}
	l.last = &listed{
		number: number, endedAt: l.clock(),
		tokens: map[string]bool{}, nodes: map[string][]*v1alpha1.NodeAttestation{},
	}
	for i := range list.Items {
		l.last.add(&list.Items[i])
	}
	for _, w := range l.waiting {
		if w.asked < number {
			waited = append(waited, w.request)
		}
	}
	return waited
}

// add keeps the tokens of an entry, and the fields that identify it and show whether it is revoked.
func (l *listed) add(entry *v1alpha1.NodeAttestation) {
	for _, id := range entry.TokenIDs() {
		l.tokens[id] = true
	}
	kept := &v1alpha1.NodeAttestation{}
	kept.Name, kept.UID, kept.CreationTimestamp = entry.Name, entry.UID, entry.CreationTimestamp
	kept.Spec.NodeName, kept.Status.Phase = entry.Spec.NodeName, entry.Phase()
	l.nodes[kept.Spec.NodeName] = append(l.nodes[kept.Spec.NodeName], kept)
}

// forget removes a deleted request.
func (l *listing) forget(request types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, request)
}

// checkToken returns nil if no entry names a token. It returns errBehind if that is not known yet,
// or if the cache does not have the entry yet.
func (l *listing) checkToken(request metav1.Object, id string) error {
	list, err := l.after(request)
	if err == nil && list.tokens[id] {
		err = errBehind
	}
	if err != nil {
		return fmt.Errorf("look for the NodeAttestation that names bootstrap token %s: %w", id, err)
	}
	return nil
}

// revoked returns the entries of a node if all of them are revoked; none if the ledger does not
// have the node. It returns errBehind if that is not known yet, or if the cache does not have an
// entry that is not revoked.
func (l *listing) revoked(request metav1.Object, node string) ([]*v1alpha1.NodeAttestation, error) {
	list, err := l.after(request)
	if err != nil {
		return nil, fmt.Errorf("look for the NodeAttestation of a node: %w", err)
	}
	for _, entry := range list.nodes[node] {
		if entry.Status.Phase != v1alpha1.Revoked {
			return nil, fmt.Errorf("look for the NodeAttestation of node %s: %w", node, errBehind)
		}
	}
	return list.nodes[node], nil
}
