package bootstrap

import (
	"context"
	"sync"
)

// machineLocks serialize the requests of one machine. Concurrent requests would get correct
// answers too, but each change of the machine's entry makes the others start again. Replicas
// do not share these locks: the API server guarantees that there is one token.
type machineLocks struct {
	mu   sync.Mutex
	held map[string]*machineLock
}

type machineLock struct {
	// free holds one element while the lock is free.
	free chan struct{}
	// users counts the holder of the lock and those who wait for it.
	users int
}

func newMachineLocks() *machineLocks { return &machineLocks{held: map[string]*machineLock{}} }

// lock waits for the lock of a machine, or until the context ends.
func (l *machineLocks) lock(ctx context.Context, machine string) (unlock func(), err error) {
	mine := l.enter(machine)
	select {
	case <-mine.free:
		return func() {
			mine.free <- struct{}{}
			l.leave(machine, mine)
		}, nil
	case <-ctx.Done():
		l.leave(machine, mine)
		return nil, ctx.Err()
	}
}

func (l *machineLocks) enter(machine string) *machineLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine, known := l.held[machine]
	if !known {
		mine = &machineLock{free: make(chan struct{}, 1)}
		mine.free <- struct{}{}
		l.held[machine] = mine
	}
	mine.users++
	return mine
}

func (l *machineLocks) leave(machine string, mine *machineLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.held, machine)
	}
}
