package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// keyInterval is the time between two readings of the key of tokens.
const keyInterval = time.Minute

var errTokenKeyUnread = errors.New("the key of tokens has not been read yet")

// tokenKey reads the key of tokens now and then: a server that cannot read it gives no
// tokens, and is not ready.
type tokenKey struct {
	read func(context.Context) error
	// trouble is why the key could not be read last, and points to nil if it could; nil
	// before it was tried.
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
				logger.Info("the key of tokens cannot be read, so that no machine gets a token", "cause", cause)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// state holds when the key could be read.
func (k *tokenKey) state() (string, error) {
	if trouble := k.trouble.Load(); trouble != nil {
		return "", *trouble
	}
	return "", errTokenKeyUnread
}
