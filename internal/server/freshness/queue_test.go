package freshness

import (
	"fmt"
	"sync"
	"testing"
)

func TestQueuesAreEmptyAfterAllWaits(t *testing.T) {
	qs := newQueues(10, 1000)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for j := range 500 {
				node := fmt.Sprintf("node-%d", (i+j)%20)
				waiting := qs.enter(node, "", &question{key: j % 3, probe: func() bool { return j%2 == 0 }})
				qs.changed(node)
				qs.leave(waiting)
			}
		})
	}
	running.Wait()
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.byNode) != 0 || len(qs.dirty) != 0 || qs.waiting.Load() != 0 {
		t.Errorf("left: %d nodes, %d dirty, %d requests", len(qs.byNode), len(qs.dirty), qs.waiting.Load())
	}
}
