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

// listInterval is how long the ledger is not listed again. Whoever has a token or the
// certificate of a node that no entry names chooses how many requests to make.
const listInterval = time.Second

// askedLists is for how many lists it is remembered that a request asked: longer than the
// longest pause before it is tried again.
const askedLists = 60

// listing finds out of the API server that the ledger has no entry with a token or a
// node's name: the cache may not have heard of the entry yet. All requests share what is
// listed. No request waits in a worker: it is tried again.
type listing struct {
	ledger *ledger.Client
	clock  func() time.Time

	mu sync.Mutex
	// asked has the requests that need a list, by UID, with how many had begun when they
	// asked: one that begins later is good for them.
	asked map[types.UID]int
	// begun counts the lists that were begun, the last one at beganAt. While reading, that
	// is not at its end.
	begun   int
	beganAt time.Time
	reading bool
	// last is the last list that was read to its end.
	last *listed
}

// listed is what one list of the ledger says.
type listed struct {
	// number is which list it was; the first is 1. It ended at endedAt.
	number  int
	endedAt time.Time
	tokens  map[string]bool
	nodes   map[string][]*v1alpha1.NodeAttestation
}

func newListing(ledger *ledger.Client, clock func() time.Time) *listing {
	return &listing{ledger: ledger, clock: clock, asked: map[types.UID]int{}}
}

// after returns a list of the ledger that was begun after the request asked first, and
// that ended a moment ago. It is errBehind if there is none yet. Each decision needs a
// list of its own time: a request that has got one asks anew.
func (l *listing) after(ctx context.Context, request types.UID) (*listed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, known := l.asked[request]
	if !known {
		l.asked[request] = l.begun
		return nil, errBehind // most often the cache hears of the entry meanwhile
	}
	now := l.clock()
	if l.last != nil && l.last.number > asked && now.Sub(l.last.endedAt) < listInterval {
		delete(l.asked, request)
		return l.last, nil
	}
	if l.reading || l.begun > 0 && now.Sub(l.beganAt) < listInterval {
		return nil, errBehind
	}
	if err := l.read(ctx, now); err != nil {
		return nil, err
	}
	delete(l.asked, request)
	return l.last, nil
}

// read lists the ledger. It gives the lock away meanwhile.
func (l *listing) read(ctx context.Context, now time.Time) error {
	l.begun++
	l.beganAt, l.reading = now, true
	number := l.begun
	// A request that was gone when it asked is never forgotten otherwise. Others ask anew.
	maps.DeleteFunc(l.asked, func(_ types.UID, asked int) bool { return asked < number-askedLists })
	l.mu.Unlock()
	list, err := l.ledger.List(ctx)
	l.mu.Lock()
	l.reading = false
	if err != nil {
		return err
	}
	l.last = &listed{number: number, endedAt: l.clock(), tokens: map[string]bool{}, nodes: map[string][]*v1alpha1.NodeAttestation{}}
	for i := range list.Items {
		l.last.add(&list.Items[i])
	}
	return nil
}

// add keeps what is asked for: tokens, and the entries of each node as far as it matters
// which of them are revoked.
func (l *listed) add(entry *v1alpha1.NodeAttestation) {
	for _, id := range entry.TokenIDs() {
		l.tokens[id] = true
	}
	kept := &v1alpha1.NodeAttestation{}
	kept.Name, kept.UID, kept.CreationTimestamp = entry.Name, entry.UID, entry.CreationTimestamp
	kept.Spec.NodeName, kept.Status.Phase = entry.Spec.NodeName, entry.Phase()
	l.nodes[kept.Spec.NodeName] = append(l.nodes[kept.Spec.NodeName], kept)
}

// forget drops what is known of a request that is gone.
func (l *listing) forget(request types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asked, request)
}

// checkToken returns nil if no entry names a token. It is errBehind if that is not known
// yet, or if the cache has not heard of the entry that does.
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

// revoked returns the entries of a node, all of which are revoked; none if the ledger does
// not have the node. It is errBehind if that is not known yet, or if the cache has not
// heard of one that is not revoked.
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
