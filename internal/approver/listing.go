package approver

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/ledger"
)

// listInterval is the minimum time between two lists of the ledger. The owner of a token or
// certificate that no entry names can create any number of requests.
const listInterval = time.Second

// askedLists is for how many lists a waiting request is remembered. This is longer than the longest
// delay of a retry.
const askedLists = 60

// listing lists the ledger in the API server to confirm that no entry has a token or a node name,
// because the cache may be behind. All requests share a list. A request does not block a worker
// while it waits: it is retried.
type listing struct {
	ledger *ledger.Client
	clock  func() time.Time

	mu sync.Mutex
	// asked holds the requests that need a list, by UID, with the number of lists that had
	// started when they asked. They need a list that started later.
	asked map[types.UID]int
	// started counts the lists that have started; startedAt is the time of the last one. While
	// reading, it has not ended.
	started   int
	startedAt time.Time
	reading   bool
	// last is the last complete list.
	last *listed
}

// listed is the result of one list.
type listed struct {
	// number counts lists from 1. endedAt is the time when the list ended.
	number  int
	endedAt time.Time
	tokens  map[string]bool
	nodes   map[string][]*v1alpha1.NodeAttestation
}

func newListing(ledger *ledger.Client, clock func() time.Time) *listing {
	return &listing{ledger: ledger, clock: clock, asked: map[types.UID]int{}}
}

// after returns a list of the ledger that started after the request asked first, and ended less
// than listInterval ago. It returns errBehind if there is none yet. Each decision needs a new list:
// a request that has received one asks again.
func (l *listing) after(ctx context.Context, request types.UID) (*listed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, known := l.asked[request]
	if !known {
		l.asked[request] = l.started
		return nil, errBehind // usually the cache receives the entry before the retry
	}
	now := l.clock()
	if l.last != nil && l.last.number > asked && now.Sub(l.last.endedAt) < listInterval {
		delete(l.asked, request)
		return l.last, nil
	}
	if l.reading || l.started > 0 && now.Sub(l.startedAt) < listInterval {
		return nil, errBehind
	}
	if err := l.read(ctx, now); err != nil {
		return nil, err
	}
	delete(l.asked, request)
	return l.last, nil
}

// read lists the ledger. It releases the lock during the list.
func (l *listing) read(ctx context.Context, now time.Time) error {
	l.started++
	l.startedAt, l.reading = now, true
	number := l.started
	// Remove requests that were deleted before they asked. Others ask again.
	maps.DeleteFunc(l.asked, func(_ types.UID, asked int) bool { return asked < number-askedLists })
	l.mu.Unlock()
	list, err := l.ledger.List(ctx)
	l.mu.Lock()
	l.reading = false
	if err != nil {
		return err
	}
	l.last = &listed{
		number: number, endedAt: l.clock(),
		tokens: map[string]bool{}, nodes: map[string][]*v1alpha1.NodeAttestation{},
	}
	for i := range list.Items {
		l.last.add(&list.Items[i])
	}
	return nil
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
	delete(l.asked, request)
}

// checkToken returns nil if no entry names a token. It returns errBehind if that is not known yet,
// or if the cache does not have the entry yet.
func (l *listing) checkToken(ctx context.Context, request types.UID, id string) error {
	list, err := l.after(ctx, request)
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
func (l *listing) revoked(ctx context.Context, request types.UID, node string) ([]*v1alpha1.NodeAttestation, error) {
	list, err := l.after(ctx, request)
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
