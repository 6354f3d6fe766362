package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
)

// attemptTimeout bounds one attempt to get what is needed at start.
const attemptTimeout = 30 * time.Second

// connectBackoff is the backoff while the API server or the cloud does not answer. It is short, because
// kubelets wait for both servers when a control plane starts.
func connectBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}
}

// pending is something that the server needs and gets later, because it has to ask others: the API server, or the
// cloud where the server itself runs.
type pending[T any] struct {
	// name describes it in messages.
	name string
	make func(context.Context) (T, error)
	made atomic.Pointer[T]
	// trouble is the last error of make.
	trouble atomic.Pointer[error]
}

// follow tries to make it until that succeeds, and reports whether it did before the context ended. Each new
// cause is logged once.
func (p *pending[T]) follow(ctx context.Context, logger logr.Logger) bool {
	backoff, logged := connectBackoff(), ""
	for ctx.Err() == nil {
		made, err := p.make(ctx)
		if err == nil {
			p.made.Store(&made)
			return true
		}
		p.trouble.Store(&err)
		if err.Error() != logged {
			logged = err.Error()
			logger.Info("waiting for "+p.name, "cause", logged)
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
	return false
}

var errNoAnswer = errors.New("it has not answered yet")

// get returns it, or an error if it is not made yet.
func (p *pending[T]) get() (made T, err error) {
	if made := p.made.Load(); made != nil {
		return *made, nil
	}
	cause := errNoAnswer
	if trouble := p.trouble.Load(); trouble != nil {
		cause = *trouble
	}
	return made, fmt.Errorf("waiting for %s: %w", p.name, cause)
}

// limited limits the time of each attempt to make something.
func limited[T any](make func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return make(ctx)
	}
}

// pendingAttestor is an attestor that becomes ready later. Until then it returns an error for all evidence.
type pendingAttestor struct {
	pending[attest.Attestor]
	// kind is the name of the attestor.
	kind string
	// challenger is nil if machines are not challenged.
	challenger *pendingChallenger
	// registered is nil if Cluster API does not register machines.
	registered *clusterapi.Registry
}

// Name implements attest.Attestor.
func (l *pendingAttestor) Name() string { return l.kind }

// Attest implements attest.Attestor.
func (l *pendingAttestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	attestor, err := l.get()
	if err != nil {
		return nil, err
	}
	identity, err := attestor.Attest(ctx, req)
	if err != nil || l.registered == nil {
		return identity, err
	}
	if err := l.registered.Check(req, identity); err != nil {
		return nil, err
	}
	return identity, nil
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

// state is a readiness check: evidence can be checked.
func (l *pendingAttestor) state() (note string, err error) {
	_, err = l.get()
	return l.kind, err
}

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
