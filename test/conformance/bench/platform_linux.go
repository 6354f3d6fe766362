package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that the calling thread has used. Unlike
// time that has passed, it does not grow while others have the processor. The
// caller must be locked to its thread.
func threadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processTime is the processor time that all threads have used.
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// processTimeOf is the processor time that another process has used.
func processTimeOf(pid int) time.Duration {
	const perProcess = 2 // CPUCLOCK_SCHED: see clock_getcpuclockid(3)
	return clock(int32(^pid)<<3 | perProcess)
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("reading a processor time clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}

// peakMemory is the most physical memory, in bytes, that a running process has
// had at once. (What wait reports for a child includes what its parent had when
// it started the child.)
func peakMemory(pid int) float64 { return memory(pid, "VmHWM") }

// residentMemory is the physical memory, in bytes, that a running process has.
func residentMemory(pid int) float64 { return memory(pid, "VmRSS") }

// memory reads one line of the kernel's status of a process; 0 when it has
// ended.
func memory(pid int, name string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, name+": %f kB", &kib); n == 1 {
			return kib * 1024
		}
	}
	return 0
}
