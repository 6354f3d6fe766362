package localplane

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

// ProgramOptions describe an additional program of a plane, for example a webhook.
type ProgramOptions struct {
	// Path and Args are the path and the arguments of the program.
	Path string
	Args []string
	// Env is its environment, "NAME=VALUE" each. The default is the environment of this process.
	Env []string
	// Ready returns nil when the program is ready.
	Ready func(ctx context.Context) error
}

// Program is a process that ends with its plane.
type Program struct{ unit *unit }

// AddProgram starts a program with a name that is unique in the plane, and waits until it
// is ready. A program that is not ready in time stays in the plane.
func (p *Plane) AddProgram(ctx context.Context, name string, options ProgramOptions) (*Program, error) {
	program := &Program{unit: &unit{
		group:    p.group,
		spec:     process.Spec{Name: name, Path: options.Path, Args: options.Args, Env: options.Env, Log: p.layout.log(name)},
		progress: p.options.Progress,
		ready:    options.Ready,
		changed:  p.writeState,
	}}
	p.mu.Lock()
	p.programs = append(p.programs, program)
	p.mu.Unlock()
	if err := program.unit.start(ctx); err != nil {
		return nil, fmt.Errorf("add program %q: %w", name, err)
	}
	return program, nil
}

// stopPrograms stops all programs gracefully.
func (p *Plane) stopPrograms() error {
	p.mu.Lock()
	programs := p.programs
	p.mu.Unlock()
	var all errgroup.Group
	for _, program := range programs {
		all.Go(program.unit.stop)
	}
	return all.Wait()
}

// TakePort reserves a port of 127.0.0.1 for the life of the plane.
func (p *Plane) TakePort() (int, error) { return p.reserved.Take() }

// LogFile returns the path of the program's log.
func (g *Program) LogFile() string { return g.unit.spec.Log }

// Stop stops the program gracefully.
func (g *Program) Stop() error { return g.unit.stop() }

// Kill kills the program, which simulates a crash.
func (g *Program) Kill() error { return g.unit.kill() }

// Start starts the program again, with the same arguments, and waits until it is ready.
func (g *Program) Start(ctx context.Context) error { return g.unit.start(ctx) }

// Pause freezes the program: its connections stay open and it does not answer.
func (g *Program) Pause() error { return g.unit.signal(syscall.SIGSTOP) }

// Resume continues a paused program.
func (g *Program) Resume() error { return g.unit.signal(syscall.SIGCONT) }
