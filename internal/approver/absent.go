package approver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/ledger"
)

// listInterval is how long the ledger is not listed again for tokens that no entry
// names. Whoever has such a token chooses how many requests to make.
const listInterval = time.Second

// absence finds out of the API server that no entry names a token: the cache may not
// have heard of the entry yet. All requests share what is listed.
type absence struct {
	ledger *ledger.Client
	clock  func() time.Time
	// missed has the requests whose token the cache did not know, by UID, with how
	// many lists there had been when it was asked for last.
	missed sync.Map

	mu     sync.Mutex
	lists  int
	listed time.Time
	named  map[string]bool
}

// check returns nil if no entry has named the token since its request was made: a list
// that is younger than the request has none. It is errBehind if that is not known yet.
func (a *absence) check(ctx context.Context, request types.UID, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, asked := a.missed.LoadOrStore(request, a.lists)
	if !asked {
		return behind(id) // most often the cache hears of it meanwhile
	}
	if a.lists == before {
		if err := a.list(ctx, id); err != nil {
			return err
		}
	}
	if a.named[id] {
		a.missed.Store(request, a.lists)
		return behind(id)
	}
	return nil
}

// list reads which tokens entries name, unless that was done a moment ago.
func (a *absence) list(ctx context.Context, id string) error {
	now := a.clock()
	if a.lists > 0 && now.Sub(a.listed) < listInterval {
		return behind(id)
	}
	list, err := a.ledger.List(ctx)
	if err != nil {
		return err
	}
	a.lists, a.listed, a.named = a.lists+1, now, map[string]bool{}
	for i := range list.Items {
		for _, named := range list.Items[i].TokenIDs() {
			a.named[named] = true
		}
	}
	return nil
}

// forget drops what is known of a request that is gone.
func (a *absence) forget(request types.UID) { a.missed.Delete(request) }

func behind(id string) error {
	return fmt.Errorf("look for the NodeAttestation that names bootstrap token %s: %w", id, errBehind)
}
