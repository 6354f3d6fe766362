package bootstrap

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/node-authorizer/node-authorizer/ledger"
)

// keyLife is how long the key of tokens is used before it is read again, so that
// every replica hears of another key without a restart.
const keyLife = time.Minute

// keyring has the key of tokens as it was read last. One request at a time reads it;
// those that come meanwhile take what it has read, if that is new enough for them.
type keyring struct {
	read func(context.Context) ([]byte, error)
	now  func() time.Time
	// turn holds one element while nobody reads.
	turn chan struct{}

	mu sync.Mutex
	// begun is how many readings have begun.
	begun int
	last  reading
}

// reading is one that succeeded.
type reading struct {
	key *ledger.TokenKey
	// number is which reading it was; the first is 1.
	number int
	at     time.Time
}

func newKeyring(read func(context.Context) ([]byte, error), now func() time.Time) *keyring {
	k := &keyring{read: read, now: now, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// current returns the key, which was read a short time ago at most.
func (k *keyring) current(ctx context.Context) (*ledger.TokenKey, error) {
	return k.get(ctx, func(last reading) bool { return k.now().Sub(last.at) < keyLife })
}

// latest returns the key as it is now: its reading began after this call.
func (k *keyring) latest(ctx context.Context) (*ledger.TokenKey, error) {
	k.mu.Lock()
	begun := k.begun
	k.mu.Unlock()
	return k.get(ctx, func(last reading) bool { return last.number > begun })
}

// get returns the key that was read last, if that is new enough, and reads it
// otherwise.
func (k *keyring) get(ctx context.Context, newEnough func(reading) bool) (*ledger.TokenKey, error) {
	if key := k.had(newEnough); key != nil {
		return key, nil
	}
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the key of tokens: %w", ctx.Err())
	}
	defer func() { k.turn <- struct{}{} }()
	if key := k.had(newEnough); key != nil {
		return key, nil
	}
	return k.readAgain(ctx)
}

// had returns the key that was read last, if that is new enough.
func (k *keyring) had(newEnough func(reading) bool) *ledger.TokenKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last.key == nil || !newEnough(k.last) {
		return nil
	}
	return k.last.key
}

func (k *keyring) readAgain(ctx context.Context) (*ledger.TokenKey, error) {
	k.mu.Lock()
	k.begun++
	this := reading{number: k.begun, at: k.now()}
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
