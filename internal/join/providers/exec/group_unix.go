//go:build unix

package exec

import (
	osexec "os/exec"
	"syscall"
)

// inOwnGroup lets a command start a group of processes, which is killed as a whole when the time is
// over. It returns how to kill the group of a command that has failed.
func inOwnGroup(cmd *osexec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there is nobody left, usually
		}
	}
}
