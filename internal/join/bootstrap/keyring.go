package bootstrap

import (
	"context"
	"fmt"
	"sync"
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
	// semaphore holds one element while no request reads.
	semaphore chan struct{}

	mu sync.Mutex
	// started is how many readings have started.
	started int
	last    reading
}

// reading is a successful reading of the key.
type reading struct {
	key *ledger.TokenKey
	// number counts readings from 1.
	number int
	at     time.Time
}

func newKeyring(read func(context.Context) ([]byte, error), now func() time.Time) *keyring {
	k := &keyring{read: read, now: now, semaphore: make(chan struct{}, 1)}
	k.semaphore <- struct{}{}
	return k
}

// current returns the key, which was read at most keyTTL ago.
func (k *keyring) current(ctx context.Context) (*ledger.TokenKey, error) {
	return k.get(ctx, func(last reading) bool { return k.now().Sub(last.at) < keyTTL })
}

// latest returns the key from a reading that starts after this call.
func (k *keyring) latest(ctx context.Context) (*ledger.TokenKey, error) {
	k.mu.Lock()
	started := k.started
	k.mu.Unlock()
	return k.get(ctx, func(last reading) bool { return last.number > started })
}

// get returns the cached key if it is new enough, and reads it otherwise.
func (k *keyring) get(ctx context.Context, newEnough func(reading) bool) (*ledger.TokenKey, error) {
	if key := k.cached(newEnough); key != nil {
		return key, nil
	}
	select {
	case <-k.semaphore:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the token key: %w", ctx.Err())
	}
	defer func() { k.semaphore <- struct{}{} }()
	if key := k.cached(newEnough); key != nil {
		return key, nil
	}
	return k.readAgain(ctx)
}

// cached returns the cached key if it is new enough.
func (k *keyring) cached(newEnough func(reading) bool) *ledger.TokenKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last.key == nil || !newEnough(k.last) {
		return nil
	}
	return k.last.key
}

func (k *keyring) readAgain(ctx context.Context) (*ledger.TokenKey, error) {
	k.mu.Lock()
	k.started++
	this := reading{number: k.started, at: k.now()}
	k.mu.Unlock()
	text, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	if this.key, err = ledger.NewTokenKey(text); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = this
	return this.key, nil
}
