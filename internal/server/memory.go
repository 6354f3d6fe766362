package server

import (
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
)

// The garbage collector does not know the memory limit of a container, and lets the heap grow beyond
// it. Its limit is set to nine tenths of that limit; the rest is for memory that it does not count.

// memoryShare is the part of a cgroup's limit, in tenths, for the Go runtime.
const memoryShare = 9

// minMemory and maxMemory bound plausible limits: a server cannot run with less, and cgroup v1 has a
// large number if there is no limit.
const (
	minMemory = 16 << 20
	maxMemory = 1 << 50
)

// limitMemory sets the memory limit of the runtime from the limit of the cgroup, v1 or v2, unless
// GOMEMLIMIT is set. Root is the root of the file system.
func limitMemory(root string, logger logr.Logger) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		return
	}
	if limit := cgroupMemory(root); limit > 0 {
		debug.SetMemoryLimit(limit / 10 * memoryShare)
		logger.Info("memory is limited by the cgroup", "limit", limit)
	}
}

// cgroupMemory returns the smallest memory limit in bytes of the cgroup of this process and its
// parents, 0 if there is none. Files that cannot be read are ignored: the kernel enforces the limit
// in any case.
func cgroupMemory(root string) int64 {
	groups, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	var smallest int64
	for line := range strings.Lines(string(groups)) {
		// "0::/path" in v2, "7:memory:/path" in v1.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"; !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
		}
		// In a container, the path may be the path on the host. Then the limit is at the root.
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			if limit := readLimit(path.Join(root, mount, dir, file)); limit > 0 && (smallest == 0 || limit < smallest) {
				smallest = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return smallest
}

// readLimit returns 0 for "max", and for implausible limits.
func readLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit < minMemory || limit > maxMemory {
		return 0
	}
	return limit
}
