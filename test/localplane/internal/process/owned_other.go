//go:build !linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

func ownedByThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onMainThread is needed only where threads own processes.
func onMainThread() bool { return false }

func startTime(pid int) (string, error) {
	text, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", fmt.Sprint(pid)).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", ErrNotRunning
	}
	if err != nil {
		return "", fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 || strings.HasPrefix(fields[0], "Z") {
		return "", ErrNotRunning
	}
	return strings.Join(fields[1:], " "), nil
}
