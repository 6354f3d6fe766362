// Package ports reserves TCP ports on the loopback address that stay free until a program
// listens on them, and between two runs of it.
//
// A port that the kernel chose and that was closed again may be given to another process
// a moment later. So ports are taken from a range below the one from which Linux and
// macOS choose, and a lock file per port excludes planes of other processes.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// The range ends below 30000, the first node port of a cluster on this machine, and below
// 32768, the beginning of Linux's own range.
const (
	first = 20000
	count = 10000
)

// Reservation holds ports until it is released or its process exits.
type Reservation struct {
	mu    sync.Mutex
	locks []*os.File
}

// Take reserves a port.
func (r *Reservation) Take() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("node-authorizer-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	start := rand.IntN(count)
	for i := range count {
		port := first + (start+i)%count
		lock, err := lockPort(dir, port)
		if err != nil {
			return 0, err
		}
		if lock == nil {
			continue
		}
		if !free(port) {
			lock.Close()
			continue
		}
		r.locks = append(r.locks, lock)
		return port, nil
	}
	return 0, fmt.Errorf("reserve a port: every port from %d to %d of 127.0.0.1 is in use", first, first+count-1)
}

// Release releases all ports.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, lock := range r.locks {
		lock.Close()
	}
	r.locks = nil
}

// lockPort returns nil without an error when another process has the port.
func lockPort(dir string, port int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, nil
	}
	return lock, nil
}

// free also checks the wildcard address, because a hollow kubelet listens on it.
func free(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			return false
		}
		listener.Close()
	}
	return true
}
