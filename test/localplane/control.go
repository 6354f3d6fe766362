package localplane

import (
	"context"
	"fmt"
	"syscall"
)

// StopComponent stops a component gracefully.
func (p *Plane) StopComponent(c Component) error {
	return p.onComponent(c, (*unit).stop)
}

// Kill kills a component, which simulates a crash.
func (p *Plane) Kill(c Component) error {
	return p.onComponent(c, (*unit).kill)
}

// StartComponent starts a component that was stopped or killed, on the same port and with
// the same data, and waits until it is ready.
func (p *Plane) StartComponent(ctx context.Context, c Component) error {
	return p.onComponent(c, func(u *unit) error { return u.start(ctx) })
}

// Restart stops a component gracefully and starts it again.
func (p *Plane) Restart(ctx context.Context, c Component) error {
	return p.onComponent(c, func(u *unit) error { return u.restart(ctx) })
}

// AuthorizeBy restarts kube-apiserver with other authorizers for nodes, and waits until
// it is ready.
func (p *Plane) AuthorizeBy(ctx context.Context, a Authorization) error {
	options := p.options
	options.Authorization, options.AuthorizationConfig = a, ""
	options, err := options.complete()
	if err != nil {
		return fmt.Errorf("let kube-apiserver authorize by another choice: %w", err)
	}
	apiServer := p.components[APIServer]
	if err := apiServer.stop(); err != nil {
		return err
	}
	p.options = options
	apiServer.spec.Args = p.componentArgs(APIServer, p.apiServerArgs())
	return apiServer.start(ctx)
}

// Pause freezes a component: its connections stay open and it does not answer.
func (p *Plane) Pause(c Component) error {
	return p.onComponent(c, func(u *unit) error { return u.signal(syscall.SIGSTOP) })
}

// Resume continues a paused component.
func (p *Plane) Resume(c Component) error {
	return p.onComponent(c, func(u *unit) error { return u.signal(syscall.SIGCONT) })
}

func (p *Plane) onComponent(c Component, do func(*unit) error) error {
	u, ok := p.components[c]
	if !ok {
		return fmt.Errorf("%q is not a component: they are %v", c, Components())
	}
	return do(u)
}
