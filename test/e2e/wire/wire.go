// Package wire stands between a client and a server, or several servers behind
// one address, and does to their TCP connections what networks do: it cuts them,
// it is slow, and it leaves out servers that do not answer.
package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Wire accepts connections on one address and carries each to one of its ends.
type Wire struct {
	listener net.Listener
	ends     []string
	// from is the address that the ends see.
	from    net.Addr
	running sync.WaitGroup

	mu          sync.Mutex
	next        int
	cut         bool
	delay       time.Duration
	connections map[net.Conn]bool
}

// Listen starts a wire on a port of 127.0.0.1. The ends, each a host:port, are
// taken in turns; one that cannot be reached is passed over.
func Listen(ends ...string) (*Wire, error) { return ListenFrom("127.0.0.1", ends...) }

// ListenFrom is Listen, and the ends see connections from another loopback
// address: they come from a machine of its own.
func ListenFrom(address string, ends ...string) (*Wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a port of 127.0.0.1: %w", err)
	}
	w := &Wire{listener: listener, ends: ends, from: &net.TCPAddr{IP: net.ParseIP(address)}, connections: map[net.Conn]bool{}}
	w.running.Go(w.accept)
	return w, nil
}

// Address is the host:port on which the wire listens.
func (w *Wire) Address() string { return w.listener.Addr().String() }

// Cut ends all connections and every new one until Mend is called.
func (w *Wire) Cut() {
	w.mu.Lock()
	w.cut = true
	w.mu.Unlock()
	w.Reset()
}

// Mend lets connections through again.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// Reset ends all connections; new ones are let through.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for connection := range w.connections {
		connection.Close()
	}
}

// Slow holds back what clients send, each time that they send something, until
// it is called again.
func (w *Wire) Slow(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
}

// Close ends the wire and all its connections, and waits for them.
func (w *Wire) Close() error {
	err := w.listener.Close()
	w.Cut()
	w.running.Wait()
	return err
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() { w.carry(client) })
	}
}

func (w *Wire) carry(client net.Conn) {
	defer w.forget(client)
	if !w.remember(client) {
		return
	}
	server, err := w.dial()
	if err != nil {
		return
	}
	defer w.forget(server)
	if !w.remember(server) {
		return
	}
	// When one direction ends so does the other: no protocol here uses half of a
	// connection.
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		client.Close()
	})
	w.copySlowly(server, client)
	server.Close()
	back.Wait()
}

// copySlowly copies what the client sends.
func (w *Wire) copySlowly(server, client net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			w.mu.Lock()
			delay := w.delay
			w.mu.Unlock()
			time.Sleep(delay)
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// dial takes the ends in turns and the first that answers.
func (w *Wire) dial() (net.Conn, error) {
	w.mu.Lock()
	first := w.next
	w.next++
	w.mu.Unlock()
	var errs []error
	dialer := net.Dialer{Timeout: time.Second, LocalAddr: w.from}
	for i := range w.ends {
		server, err := dialer.Dial("tcp", w.ends[(first+i)%len(w.ends)])
		if err == nil {
			return server, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// remember returns false when the wire is cut.
func (w *Wire) remember(connection net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections[connection] = true
	return !w.cut
}

func (w *Wire) forget(connection net.Conn) {
	connection.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.connections, connection)
}
