package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

const (
	// startTimeout is how long a process may take to become ready.
	startTimeout = 2 * time.Minute
	// stopGrace is how long it may take to stop gracefully.
	stopGrace = 20 * time.Second
	// pollInterval is the time between two checks of a condition.
	pollInterval = 50 * time.Millisecond
	// checkTimeout bounds one check.
	checkTimeout = 30 * time.Second
)

// unit is a process of the plane that can be stopped and started again: a
// component or a hollow kubelet.
type unit struct {
	group    *process.Group
	spec     process.Spec
	progress io.Writer
	// started, if set, is called with each new process.
	started func(p *process.Process)
	// ready returns nil when the process is ready.
	ready func(ctx context.Context) error
	// ended, if set, runs after the process has ended.
	ended func()
	// changed is called after each start and end.
	changed func() error

	mu      sync.Mutex
	process *process.Process
	// scratch are the paths outside of the plane's folder that the process made.
	scratch []string
}

// start runs the process and waits until it is ready. A process that is not ready in time
// keeps running, so that it can be examined.
func (u *unit) start(ctx context.Context) error {
	began := time.Now()
	if err := u.launch(); err != nil {
		return err
	}
	if err := u.waitReady(ctx); err != nil {
		return err
	}
	fmt.Fprintf(u.progress, "%s is ready (%s)\n", u.spec.Name, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// launch starts the process without waiting.
func (u *unit) launch() error {
	u.mu.Lock()
	if u.process != nil && u.process.Running() {
		u.mu.Unlock()
		return fmt.Errorf("start %s: it runs already", u.spec.Name)
	}
	p, err := u.group.Start(u.spec)
	if err != nil {
		u.mu.Unlock()
		return err
	}
	u.process = p
	u.mu.Unlock()
	if u.started != nil {
		u.started(p)
	}
	return u.changed()
}

// waitReady waits until the process is ready, has ended, or the context ends.
func (u *unit) waitReady(ctx context.Context) error {
	ctx, cancel := withStartTimeout(ctx)
	defer cancel()
	p := u.current()
	err := poll(ctx, func(ctx context.Context) error {
		select {
		case <-p.Done():
			return final{p.ExitError()}
		default:
			return u.ready(ctx)
		}
	})
	var end final
	if errors.As(err, &end) {
		return end.error
	}
	if err != nil {
		return fmt.Errorf("wait until %s is ready: %w; its log is %s", u.spec.Name, err, u.spec.Log)
	}
	return nil
}

func (u *unit) current() *process.Process {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.process
}

// stop stops the process gracefully; kill kills it. It is not an error if the process
// does not run.
func (u *unit) stop() error { return u.end(func(p *process.Process) { p.Stop(stopGrace) }) }
func (u *unit) kill() error { return u.end((*process.Process).Kill) }

func (u *unit) end(how func(*process.Process)) error {
	p := u.current()
	if p == nil {
		return nil
	}
	how(p)
	if u.ended != nil {
		u.ended()
	}
	return u.changed()
}

func (u *unit) signal(signal syscall.Signal) error {
	p := u.current()
	if p == nil || !p.Running() {
		return fmt.Errorf("send %s to %s: it does not run", signal, u.spec.Name)
	}
	return p.Signal(signal)
}

func (u *unit) restart(ctx context.Context) error {
	if err := u.stop(); err != nil {
		return err
	}
	return u.start(ctx)
}

// state returns false if the process does not run.
func (u *unit) state() (ProcessState, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process == nil || !u.process.Running() {
		return ProcessState{}, false
	}
	return ProcessState{
		Name:     u.spec.Name,
		Identity: u.process.Identity(),
		Log:      u.spec.Log,
		Scratch:  slices.Clone(u.scratch),
	}, true
}

func withStartTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it took longer than %s", startTimeout))
}

// final is an error that a retry cannot fix.
type final struct{ error }

// poll calls condition until it returns nil, returns a final error, or the context ends;
// then the error includes the last one of condition.
func poll(ctx context.Context, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx, condition)
		var end final
		if err == nil || errors.As(err, &end) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (the last answer: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// check gives a condition some seconds: a request that a fault swallows is made again.
func check(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return condition(ctx)
}
