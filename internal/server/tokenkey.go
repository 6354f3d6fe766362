package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// keyInterval is the time between two readings of the token key.
const keyInterval = time.Minute

var errTokenKeyUnread = errors.New("the token key has not been read yet")

// tokenKey reads the token key at intervals: a server that cannot read it gives no tokens, and is not
// ready.
type tokenKey struct {
	read func(context.Context) error
	// trouble points to the error of the last reading, which is nil if it succeeded; nil
	// before the first reading.
	trouble atomic.Pointer[error]
}

func newTokenKey(read func(context.Context) error) *tokenKey { return &tokenKey{read: read} }

// follow reads the key until the context ends.
func (k *tokenKey) follow(ctx context.Context, logger logr.Logger) {
	backoff, logged := connectBackoff(), ""
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := k.read(attempt)
		cancel()
		k.trouble.Store(&err)
		pause := keyInterval
		if err == nil {
			backoff, logged = connectBackoff(), ""
		} else {
			pause = backoff.Step()
			if cause := err.Error(); cause != logged {
				logged = cause
				logger.Info("the token key cannot be read, so that no machine gets a token", "cause", cause)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// state is a readiness check: the key can be read.
func (k *tokenKey) state() (string, error) {
	if trouble := k.trouble.Load(); trouble != nil {
		return "", *trouble
	}
	return "", errTokenKeyUnread
}
