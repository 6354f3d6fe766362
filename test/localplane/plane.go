package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/build"
	"github.com/node-authorizer/node-authorizer/test/localplane/internal/ports"
	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

// Plane is a running control plane with its hollow nodes. It is safe for concurrent use.
type Plane struct {
	// Dir is the folder of the plane.
	Dir string
	// LogDir is the folder with one log for each component and each node.
	LogDir string

	options      Options
	layout       layout
	temporary    bool
	lock         *os.File
	owner        process.Identity
	binaries     build.Binaries
	group        *process.Group
	reserved     *ports.Reservation
	ports        componentPorts
	server       string
	certificates *certificates
	components   map[Component]*unit
	admin        *rest.Config
	client       kubernetes.Interface
	stop         sync.Once
	stopErr      error

	// mu guards the following fields, and the state file.
	mu        sync.Mutex
	ready     bool
	nodes     []*Node
	programs  []*Program
	withState bool
}

// Build builds the programs of the control plane if they are not cached, and returns
// their folder. Start does so too.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	binaries, err := build.Ensure(ctx, progress)
	return binaries.Dir, err
}

// Start builds missing programs, starts every component, and returns when all of them are
// ready. The context limits the start, not the life of the plane. If Start fails, nothing
// is left running; the logs stay.
func Start(ctx context.Context, options Options) (*Plane, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	binaries, err := build.Ensure(ctx, options.Progress, options.programs()...)
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	p := &Plane{options: options, binaries: binaries, group: process.NewGroup(), reserved: &ports.Reservation{}}
	if err := p.start(ctx); err != nil {
		p.temporary = false
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), p.Stop())
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context) error {
	if err := p.claimDir(); err != nil {
		return err
	}
	if err := p.takePorts(); err != nil {
		return err
	}
	var err error
	if p.certificates, err = newCertificates(p.layout); err != nil {
		return err
	}
	if err := p.makeUnits(); err != nil {
		return err
	}
	if p.options.Prepare != nil {
		if err := p.options.Prepare(p); err != nil {
			return fmt.Errorf("run Prepare: %w", err)
		}
	}
	if p.admin, err = clientcmd.BuildConfigFromFlags("", p.AdminKubeconfig()); err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	// Tests send many requests, and the plane has no other users.
	p.admin.QPS = -1
	if p.client, err = kubernetes.NewForConfig(p.admin); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	p.withState = true
	if err := p.startComponents(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	return p.writeState()
}

func (p *Plane) startComponents(ctx context.Context) error {
	for _, component := range []Component{Etcd, APIServer} {
		if err := p.components[component].start(ctx); err != nil {
			return err
		}
	}
	if !p.options.WithoutBootstrapRBAC {
		if err := p.bindBootstrapRoles(ctx); err != nil {
			return err
		}
	}
	if p.options.OnAPIServer != nil {
		if err := p.options.OnAPIServer(ctx, p); err != nil {
			return fmt.Errorf("run OnAPIServer: %w", err)
		}
	}
	if p.options.WithoutControllers {
		return nil
	}
	clients, clientsCtx := errgroup.WithContext(ctx)
	for _, component := range []Component{ControllerManager, Scheduler} {
		clients.Go(func() error { return p.components[component].start(clientsCtx) })
	}
	if err := clients.Wait(); err != nil {
		return err
	}
	return p.waitForDefaultServiceAccount(ctx)
}

// claimDir locks the folder for this plane.
func (p *Plane) claimDir() error {
	var err error
	kept := os.Getenv(LogsVariable)
	if p.options.Dir == "" {
		if kept == "" && testing.Testing() {
			return errors.New("a failed test would lose its logs: let TestMain call KeepLogs")
		}
		p.temporary = true
		p.Dir, err = os.MkdirTemp("", "localplane-")
	} else {
		p.Dir, err = filepath.Abs(p.options.Dir)
	}
	if err != nil {
		return fmt.Errorf("find a folder for it: %w", err)
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	p.LogDir = filepath.Join(p.Dir, "logs")
	if p.temporary && kept != "" {
		p.LogDir = filepath.Join(kept, filepath.Base(p.Dir))
	}
	p.layout = layout{p.Dir, p.LogDir}

	lock, err := os.OpenFile(filepath.Join(p.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock its folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("%w, in %s: use that one, or end it with \"localplane down --dir %s\"", ErrRunning, p.Dir, p.Dir)
	}
	p.lock = lock
	// The lock is free, so the previous owner has ended. A crash may have left its
	// processes.
	if _, err := Down(p.Dir); err != nil {
		return fmt.Errorf("clean up what an earlier control plane left: %w", err)
	}
	if err := p.layout.prepare(); err != nil {
		return err
	}
	if p.owner, err = process.Identify(os.Getpid()); err != nil {
		return fmt.Errorf("identify this process: %w", err)
	}
	return nil
}

// Stop stops the nodes and the components gracefully and removes temporary files, except for logs in
// the folder of [LogsVariable]. Further calls return the same result.
func (p *Plane) Stop() error {
	p.stop.Do(func() { p.stopErr = p.end() })
	return p.stopErr
}

func (p *Plane) end() error {
	var nodes errgroup.Group
	for _, node := range p.Nodes() {
		nodes.Go(node.unit.stop)
	}
	errs := []error{nodes.Wait()}
	var clients errgroup.Group
	for _, component := range []Component{ControllerManager, Scheduler} {
		if unit := p.components[component]; unit != nil {
			clients.Go(unit.stop)
		}
	}
	errs = append(errs, clients.Wait(), p.stopPrograms())
	for _, component := range []Component{APIServer, Etcd} {
		if unit := p.components[component]; unit != nil {
			errs = append(errs, unit.stop())
		}
	}
	p.group.Close()
	p.reserved.Release()
	errs = append(errs, p.removeState())
	if p.lock != nil {
		p.lock.Close()
	}
	if p.temporary {
		errs = append(errs, os.RemoveAll(p.Dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	return nil
}

// AdminConfig returns a configuration with the rights of [Plane.AdminKubeconfig], without
// a rate limit. The caller may change it.
func (p *Plane) AdminConfig() *rest.Config { return rest.CopyConfig(p.admin) }

// Server returns the address of kube-apiserver, for example https://127.0.0.1:20001.
func (p *Plane) Server() string { return p.server }

// writeState records the running processes. It is called after every change.
func (p *Plane) writeState() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.withState {
		return nil
	}
	state := State{
		Ready:           p.ready,
		Owner:           p.owner,
		Server:          p.server,
		AdminKubeconfig: p.AdminKubeconfig(),
		LogDir:          p.LogDir,
	}
	for _, component := range Components() {
		unit := p.components[component]
		if unit == nil {
			continue
		}
		if s, ok := unit.state(); ok {
			state.Processes = append(state.Processes, s)
		}
	}
	for _, program := range p.programs {
		if s, ok := program.unit.state(); ok {
			state.Processes = append(state.Processes, s)
		}
	}
	for _, node := range p.nodes {
		if s, ok := node.unit.state(); ok {
			state.Processes = append(state.Processes, s)
		}
	}
	return state.write(p.layout.state())
}

func (p *Plane) removeState() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.withState {
		return nil
	}
	p.withState = false
	if err := os.Remove(p.layout.state()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
