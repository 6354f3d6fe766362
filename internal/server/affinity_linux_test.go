package server

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// processors returns the processors on which this process may run.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var found []int
	for n := 0; len(found) < set.Count(); n++ {
		if set.IsSet(n) {
			found = append(found, n)
		}
	}
	return found
}

func setOf(processors []int) *unix.CPUSet {
	set := new(unix.CPUSet)
	for _, n := range processors {
		set.Set(n)
	}
	return set
}

// pin makes all threads of this process run on the given processors only.
func pin(b testing.TB, on []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, setOf(on)) // the thread may have ended
		}
	}
}

// startOn starts a process that runs on the given processors only; without any, on all
// processors of this process.
func startOn(process *exec.Cmd, on []int) error {
	if len(on) == 0 {
		return process.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, setOf(on)); err != nil { // the process inherits it
		return err
	}
	err := process.Start()
	if restored := unix.SchedSetaffinity(0, &before); err == nil {
		err = restored
	}
	return err
}
