package server

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// processors are those on which this process may run.
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

// place lets all threads of this process run on the processors only.
func place(b testing.TB, on []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, setOf(on)) // a thread that has ended needs no place
		}
	}
}

// startOn starts a process that runs on the processors only; without any, on all that
// this process has.
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
	if err := unix.SchedSetaffinity(0, setOf(on)); err != nil { // processes inherit it
		return err
	}
	err := process.Start()
	if restored := unix.SchedSetaffinity(0, &before); err == nil {
		err = restored
	}
	return err
}
