package bootstrap

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// keyTTL is how long the token key is used before it is read again, so that every replica
// uses a new key without a restart.
const keyTTL = time.Minute

// keyring caches the token key. One request at a time reads it. Requests that wait use the
// result if it is new enough for them.
type keyring struct {
	read func(context.Context) ([]byte, error)
	now  func() time.Time
	// started is how many readings have started.
	started atomic.Int64
	// semaphore holds one element while a request reads the key, or uses last.
	semaphore chan struct{}
	last      reading
}

// reading is a successful reading of the key.
type reading struct {
	key *ledger.TokenKey
	// number counts readings from 1.
	number int64
	at     time.Time
}

func newKeyring(read func(context.Context) ([]byte, error), now func() time.Time) *keyring {
	return &keyring{read: read, now: now, semaphore: make(chan struct{}, 1)}
}

// current returns the key, which was read at most keyTTL ago.
func (k *keyring) current(ctx context.Context) (*ledger.TokenKey, error) {
	return k.get(ctx, func(last reading) bool { return k.now().Sub(last.at) < keyTTL })
}

// latest returns the key from a reading that starts after this call.
func (k *keyring) latest(ctx context.Context) (*ledger.TokenKey, error) {
	started := k.started.Load()
	return k.get(ctx, func(last reading) bool { return last.number > started })
}

// get returns the cached key if it is new enough, and reads it otherwise.
func (k *keyring) get(ctx context.Context, newEnough func(reading) bool) (*ledger.TokenKey, error) {
	select {
	case k.semaphore <- struct{}{}:
		defer func() { <-k.semaphore }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the token key: %w", ctx.Err())
	}
	if k.last.key != nil && newEnough(k.last) {
		return k.last.key, nil
	}
	this := reading{number: k.started.Add(1), at: k.now()}
	text, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	if this.key, err = ledger.NewTokenKey(text); err != nil {
		return nil, err
	}
	k.last = this
	return this.key, nil
}
