package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
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
