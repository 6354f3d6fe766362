package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/attest"
)

// pendingAttestor is an attestor that becomes ready later: it needs to know where the
// server itself runs, and asks the cloud until it answers. Until then it returns an error
// for all evidence.
type pendingAttestor struct {
	name string
	// make returns the attestor; nil if the attestor is ready from the beginning.
	make func(context.Context) (attest.Attestor, error)
	// challenger is nil if machines are not challenged.
	challenger *pendingChallenger
	made       atomic.Pointer[attest.Attestor]
	// trouble is the last error of make.
	trouble atomic.Pointer[error]
}

// attemptTimeout bounds one attempt to get from the cloud what is needed at start.
const attemptTimeout = 30 * time.Second

// follow tries to make the attestor until it succeeds or the context ends.
func (l *pendingAttestor) follow(ctx context.Context, logger logr.Logger) {
	if l.make == nil {
		return
	}
	backoff, reported := connectBackoff(), ""
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		made, err := l.make(attempt)
		cancel()
		if err == nil {
			l.is(made)
			logger.Info("attesting machines", "attestor", l.name)
			return
		}
		l.trouble.Store(&err)
		if err.Error() != reported {
			reported = err.Error()
			logger.Info("waiting for what the attestor needs", "attestor", l.name, "cause", reported)
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
}

func (l *pendingAttestor) is(made attest.Attestor) { l.made.Store(&made) }

// get returns the attestor, or an error if it is not ready.
func (l *pendingAttestor) get() (attest.Attestor, error) {
	if made := l.made.Load(); made != nil {
		return *made, nil
	}
	cause := errNoAnswer
	if trouble := l.trouble.Load(); trouble != nil {
		cause = *trouble
	}
	return nil, fmt.Errorf("the attestor %s is not ready: %w", l.name, cause)
}

// Name implements attest.Attestor.
func (l *pendingAttestor) Name() string { return l.name }

// Attest implements attest.Attestor.
func (l *pendingAttestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	attestor, err := l.get()
	if err != nil {
		return nil, err
	}
	return attestor.Attest(ctx, req)
}

// Gone implements attest.Presence. It returns false if the attestor does not implement
// attest.Presence.
func (l *pendingAttestor) Gone(ctx context.Context, instanceID, region string) (bool, error) {
	attestor, err := l.get()
	if err != nil {
		return false, err
	}
	if presence, ok := attestor.(attest.Presence); ok {
		return presence.Gone(ctx, instanceID, region)
	}
	return false, nil
}

// state holds when evidence can be checked.
func (l *pendingAttestor) state() (note string, err error) {
	if _, err := l.get(); err != nil {
		return "", err
	}
	return l.name, nil
}
