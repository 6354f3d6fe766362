package process

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// ErrNotRunning means that no process has the pid, or only a zombie.
var ErrNotRunning = errors.New("no such process")

// Identity identifies one process: the kernel reuses pids, but not together with the same
// start time.
type Identity struct {
	PID int `json:"pid"`
	// Started is the start time in the format of the operating system. It is only compared.
	Started string `json:"started"`
}

// Identify returns the identity of a running process, or ErrNotRunning.
func Identify(pid int) (Identity, error) {
	started, err := startTime(pid)
	if err != nil {
		return Identity{PID: pid}, err
	}
	return Identity{PID: pid, Started: started}, nil
}

// Running reports whether this process still runs.
func (i Identity) Running() bool {
	if i.PID <= 0 || i.Started == "" {
		return false
	}
	now, err := Identify(i.PID)
	return err == nil && now == i
}

// Stop sends SIGTERM to the process, waits up to grace, then kills it and waits. Another
// process with the same pid is never signalled.
func (i Identity) Stop(grace time.Duration) error {
	if err := i.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if i.gone(grace) {
		return nil
	}
	return i.Kill()
}

// Kill kills the process and waits until it has ended.
func (i Identity) Kill() error {
	if err := i.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !i.gone(10 * time.Second) {
		return fmt.Errorf("process %d still exists after SIGKILL", i.PID)
	}
	return nil
}

func (i Identity) signal(signal syscall.Signal) error {
	if !i.Running() {
		return nil
	}
	if err := syscall.Kill(i.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", signal, i.PID, err)
	}
	return nil
}

func (i Identity) gone(within time.Duration) bool {
	deadline := time.Now().Add(within)
	for i.Running() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
