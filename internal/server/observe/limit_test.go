package observe

import (
	"fmt"
	"testing"
)

// A caller that makes up names of nodes cannot fill the memory.
func TestTheNumberOfSharesIsLimited(t *testing.T) {
	l := newLimit(RefusalOptions{PerSecond: 1, Burst: 1, NotLogged: func(int) {}}, func(int) {})
	for i := range 3 * maxShares {
		l.allows(fmt.Sprintf("node-%d", i))
		if len(l.shares) > maxShares {
			t.Fatalf("%d shares", len(l.shares))
		}
	}
	l.flush()
}
