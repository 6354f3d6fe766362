// Package process runs programs that end with their owner.
//
// A [Group] starts programs from one operating system thread that exists as long as the
// group. On Linux the kernel kills every program of the group when that thread ends,
// which it does with its process, even after a crash. Other systems have no such feature;
// there a later clean-up uses the pids recorded by the caller ([Identity]).
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Spec is a program to run.
type Spec struct {
	// Name is the name of the program in messages, for example "kube-apiserver".
	Name string
	// Path is the executable.
	Path string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is its environment, "NAME=VALUE" each. The default is the environment of this process.
	Env []string
	// Log is the path of a file for standard output and standard error. It is appended
	// to, so that a restart keeps the log of the previous run.
	Log string
}

// Group starts and owns processes.
type Group struct {
	requests chan func()
	close    sync.Once
}

// NewGroup returns a group with its thread.
func NewGroup() *Group {
	g := &Group{requests: make(chan func())}
	go g.own()
	return g
}

// own makes a thread that ends with its goroutine the owner. The program's main thread
// does not: the runtime parks it instead of ending it. A goroutine that runs on it keeps
// it busy until another goroutine has a thread of its own.
func (g *Group) own() {
	runtime.LockOSThread()
	if !onMainThread() {
		g.serve()
		return
	}
	owned := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(owned)
		g.serve()
	}()
	<-owned
	runtime.UnlockOSThread()
}

// serve runs on a locked thread and never unlocks it: when it returns, the runtime ends
// the thread and the kernel kills the processes that the thread started.
func (g *Group) serve() {
	for request := range g.requests {
		request()
	}
}

// Close ends the group's thread. On Linux all its processes are killed. No process can be
// started afterwards.
func (g *Group) Close() {
	g.close.Do(func() { close(g.requests) })
}

// Start runs the program in its own process group, so that an interrupt from a terminal
// reaches the owner only.
func (g *Group) Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", spec.Name, err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownedByThread()

	started := make(chan error)
	g.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, logStart: info.Size(), done: make(chan struct{})}
	p.identity, err = Identify(cmd.Process.Pid)
	go p.wait()
	// A process that has already ended has no start time. Its exit is reported through Done.
	if err != nil && !errors.Is(err, ErrNotRunning) {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}
