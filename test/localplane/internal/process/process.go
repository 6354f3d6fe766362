package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Process is a program that a [Group] started.
type Process struct {
	spec     Spec
	cmd      *exec.Cmd
	identity Identity
	logStart int64
	done     chan struct{}
	err      error
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// Identity returns the identity of the process.
func (p *Process) Identity() Identity { return p.identity }

// Log returns the path of the process's log.
func (p *Process) Log() string { return p.spec.Log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stop sends SIGTERM to the process and waits; after grace it kills it.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	// A paused process handles SIGTERM only after SIGCONT.
	p.Signal(syscall.SIGCONT)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Kill kills the process, which simulates a crash, and waits until it has ended.
func (p *Process) Kill() {
	if p.Running() {
		// The negative pid names the process group.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.done
}

// Signal sends a signal. If the process has ended, it does nothing.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, p.spec.Name, err)
	}
	return nil
}

// Output returns the log of this run so far.
func (p *Process) Output() (string, error) {
	log, err := os.Open(p.spec.Log)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", p.spec.Name, err)
	}
	defer log.Close()
	if _, err := log.Seek(p.logStart, io.SeekStart); err != nil {
		return "", fmt.Errorf("read the log of %s: %w", p.spec.Name, err)
	}
	text, err := io.ReadAll(log)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", p.spec.Name, err)
	}
	return string(text), nil
}

// The number of lines of a log in an error: the first ones, in which a program reports
// wrong flags before their usage, and the last ones.
const (
	firstLines = 3
	lastLines  = 12
)

// ExitError returns how the process ended, lines of its log, and the path of the log. It
// may be called after Done is closed.
func (p *Process) ExitError() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	output, err := p.Output()
	if err != nil {
		return fmt.Errorf("%s ended with %s; %w", p.spec.Name, how, err)
	}
	return fmt.Errorf("%s ended with %s; its log %s says:\n%s", p.spec.Name, how, p.spec.Log, excerpt(output))
}

func excerpt(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > firstLines+lastLines {
		lines = slices.Concat(lines[:firstLines], []string{"..."}, lines[len(lines)-lastLines:])
	}
	return "  " + strings.Join(lines, "\n  ")
}
