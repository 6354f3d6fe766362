// Package wire is a TCP proxy that injects network faults. It is between a client and
// one or several servers. It closes connections, delays or drops what is sent, and skips
// servers that do not accept connections.
package wire

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Wire accepts connections on one address and forwards each to one of its servers, the
// ends.
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
	carried     map[*carried]bool
	// paused is closed by Resume; nil while the wire is not paused.
	paused chan struct{}
	// swallows is whether data on new connections is dropped.
	swallows bool
}

// carried is one connection between a client and a server.
type carried struct {
	// silent connections stay open, and all data on them is dropped.
	silent atomic.Bool
}

// Listen starts a wire on a port of 127.0.0.1. Connections go to the ends, each a
// host:port, in round-robin order; an end that cannot be reached is skipped.
func Listen(ends ...string) (*Wire, error) { return ListenFrom("127.0.0.1", ends...) }

// ListenFrom is Listen with another loopback address as the source of connections, so
// that they come from another machine.
func ListenFrom(address string, ends ...string) (*Wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a port of 127.0.0.1: %w", err)
	}
	w := &Wire{listener: listener, ends: ends, from: &net.TCPAddr{IP: net.ParseIP(address)}, connections: map[net.Conn]bool{}, carried: map[*carried]bool{}}
	w.running.Go(w.accept)
	return w, nil
}

// Address is the host:port on which the wire listens.
func (w *Wire) Address() string { return w.listener.Addr().String() }

// Cut closes all connections, and every new one until Restore is called.
func (w *Wire) Cut() {
	w.mu.Lock()
	w.cut = true
	w.mu.Unlock()
	w.Reset()
}

// Restore ends what Cut began.
func (w *Wire) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// Reset closes all connections. New ones work.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for connection := range w.connections {
		connection.Close()
	}
}

// Slow delays everything that clients send, until it is called again.
func (w *Wire) Slow(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
}

// Pause stops the wire as SIGSTOP stops a proxy: connections stay open, the kernel
// accepts new ones, and nothing is read until Resume is called.
func (w *Wire) Pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused == nil {
		w.paused = make(chan struct{})
	}
}

// Resume ends what Pause began. No data is lost.
func (w *Wire) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused != nil {
		close(w.paused)
		w.paused = nil
	}
}

// HalfOpen drops all data on the connections from now on, without closing them, as if
// the peer had vanished. New connections work.
func (w *Wire) HalfOpen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.carried {
		c.silent.Store(true)
	}
}

// Swallow is HalfOpen, for new connections too until Carry is called.
func (w *Wire) Swallow() {
	w.mu.Lock()
	w.swallows = true
	w.mu.Unlock()
	w.HalfOpen()
}

// Carry lets new connections work again.
func (w *Wire) Carry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swallows = false
}

// wait returns when the wire is not paused.
func (w *Wire) wait() {
	for {
		w.mu.Lock()
		paused := w.paused
		w.mu.Unlock()
		if paused == nil {
			return
		}
		<-paused
	}
}

// Close ends the wire and all its connections, and waits for them.
func (w *Wire) Close() error {
	err := w.listener.Close()
	w.Resume()
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
	w.wait()
	c := &carried{}
	w.mu.Lock()
	c.silent.Store(w.swallows)
	w.carried[c] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.carried, c)
	}()
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
		w.copy(client, server, c, func() {})
		if !c.silent.Load() { // otherwise the client must not see that the server has closed
			client.Close()
		}
	})
	w.copy(server, client, c, w.hold)
	server.Close()
	back.Wait()
}

// hold delays what clients send.
func (w *Wire) hold() {
	w.mu.Lock()
	delay := w.delay
	w.mu.Unlock()
	time.Sleep(delay)
}

// copy copies what one end sends, and calls before each time.
func (w *Wire) copy(to, from net.Conn, c *carried, before func()) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.wait()
		if n > 0 && !c.silent.Load() {
			before()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// dial connects to the next end that accepts.
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
