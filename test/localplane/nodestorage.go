package localplane

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/csidriver"
	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

// CSIDriver is the name of the storage driver of all hollow nodes. Its volumes can be
// staged and published anywhere and are empty. The kubelet reads their secrets as for any
// driver.
const CSIDriver = "hollow.csi.example.com"

// storage is the part of a hollow node outside of its process: the storage driver, and
// the folder and socket that kubemark makes below /tmp, whose names are only in its log.
type storage struct {
	node string

	mu      sync.Mutex
	driver  *csidriver.Server
	err     error
	started time.Time
	scratch []string
	// settled is closed when the driver serves, or has failed.
	settled chan struct{}
}

func newStorage(node string) *storage { return &storage{node: node} }

var (
	rootLine   = regexp.MustCompile(`Using (/\S+) as root dir for hollow-kubelet`)
	socketLine = regexp.MustCompile(`unix://(/tmp/kubelet_remote_\d+\.sock)`)
)

// attachStorage starts the driver for a new process when its root folder is in the log,
// after it has got its certificate.
func (n *Node) attachStorage(p *process.Process) {
	s := n.storage
	settled := make(chan struct{})
	s.mu.Lock()
	s.started, s.settled, s.err = time.Now(), settled, errors.New("the root folder is not in the log of the node yet")
	s.mu.Unlock()
	go func() {
		defer close(settled)
		s.attach(p, func(scratch []string) {
			n.unit.mu.Lock()
			n.unit.scratch = scratch
			n.unit.mu.Unlock()
			if err := n.unit.changed(); err != nil {
				s.fail(err)
			}
		})
	}()
}

func (s *storage) attach(p *process.Process, found func(scratch []string)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	var root, socket string
	err := poll(ctx, func(context.Context) error {
		output, err := p.Output()
		if err != nil {
			return final{err}
		}
		rootMatch, socketMatch := rootLine.FindStringSubmatch(output), socketLine.FindStringSubmatch(output)
		if rootMatch == nil || socketMatch == nil {
			return errors.New("the root folder is not in the log of the node yet")
		}
		root, socket = rootMatch[1], socketMatch[1]
		return nil
	})
	if err != nil {
		s.fail(err)
		return
	}
	driver, err := csidriver.Serve(root, CSIDriver, s.node)
	s.mu.Lock()
	s.driver, s.err, s.scratch = driver, err, []string{root, socket}
	s.mu.Unlock()
	found([]string{root, socket})
}

func (s *storage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// detach stops the driver after the process has ended.
func (s *storage) detach() {
	s.mu.Lock()
	settled := s.settled
	s.mu.Unlock()
	if settled != nil {
		<-settled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver != nil {
		s.driver.Stop()
		s.driver = nil
	}
	removeScratch(s.scratch)
	s.scratch = nil
}

func (s *storage) state() (started time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started, s.err
}

// root returns the folder that kubemark made below /tmp.
func (s *storage) root() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return "", s.err
	}
	if len(s.scratch) == 0 {
		return "", errors.New("the node does not run")
	}
	return s.scratch[0], nil
}
