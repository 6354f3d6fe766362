package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// ownedByThread makes the kernel kill the process when the thread that starts it ends.
func ownedByThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onMainThread reports whether the caller, locked to its thread, runs on the program's
// main thread.
func onMainThread() bool { return syscall.Gettid() == syscall.Getpid() }

// startTime reads fields 3 (state) and 22 (start time in clock ticks since boot) of
// /proc/PID/stat. The second field, the program's name in parentheses, may contain any
// character, so fields are counted from the last parenthesis.
func startTime(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", ErrNotRunning
	}
	if err != nil {
		return "", fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("read the start time of process %d: /proc/%d/stat has %d fields", pid, pid, len(fields))
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return "", ErrNotRunning
	}
	return fields[19], nil
}
