package exec

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
)

// TestProcessesOfAProgramEndWithIt: also a process that the program has started.
func TestProcessesOfAProgramEndWithIt(t *testing.T) {
	p := program(t, "attest", "hang-with-child")
	p.Timeout = time.Second
	a, c := newAttestor(t, p)
	challenge := c.Challenge()
	id, err := a.Attest(t.Context(), shown(t, challenge, key, fakeprovider.New("worker-1", challenge, key)))
	undecided(t, id, err, "did not end within 1s; it says:")
	if err == nil {
		return
	}
	fields := strings.Fields(err.Error())
	child, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatal(err)
	}
	for ended := time.After(10 * time.Second); runs(child); {
		select {
		case <-ended:
			t.Fatalf("its child, process %d, runs", child)
		case <-time.After(time.Millisecond):
		}
	}
}

// runs reports whether a process runs. One that has ended may wait for its parent.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == nil && (err != nil || !strings.Contains(string(text), ") Z "))
}
