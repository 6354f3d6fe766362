package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestPortsAreDistinctAndFree(t *testing.T) {
	var a, b Reservation
	defer a.Release()
	defer b.Release()
	seen := map[int]bool{}
	for i := range 40 {
		from := &a
		if i%2 == 1 {
			from = &b
		}
		port, err := from.Take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Errorf("port %d was given twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		listener.Close()
	}
}

func TestReleasedPortCanBeLockedAgain(t *testing.T) {
	var first Reservation
	port, err := first.Take()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	held, err := lockPort(dir, port)
	if err != nil || held == nil {
		t.Fatalf("lock %d: %v", port, err)
	}
	if again, err := lockPort(dir, port); err != nil || again != nil {
		t.Fatalf("a held port was locked again (error %v)", err)
	}
	held.Close()
	again, err := lockPort(dir, port)
	if err != nil || again == nil {
		t.Fatalf("a released port cannot be locked: %v", err)
	}
	again.Close()
	first.Release()
}
