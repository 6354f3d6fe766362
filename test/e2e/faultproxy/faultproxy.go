// Package faultproxy is a TCP proxy that injects network faults. It is between a client and
// one or several servers. It closes connections, delays or drops what is sent, and skips
// servers that do not accept connections.
package faultproxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy accepts connections on one address and forwards each to one of its servers.
type Proxy struct {
	listener net.Listener
	servers  []string
	// from is the source address that the servers see.
	from    net.Addr
	running sync.WaitGroup

	mu          sync.Mutex
	next        int
	cut         bool
	delay       time.Duration
	connections map[net.Conn]bool
	forwarded   map[*forwarded]bool
	// paused is closed by Resume; nil while the proxy is not paused.
	paused chan struct{}
	// blackhole is whether data on new connections is dropped.
	blackhole bool
}

// forwarded is one connection between a client and a server.
type forwarded struct {
	// silent connections stay open, and all data on them is dropped.
	silent atomic.Bool
}

// Listen starts a proxy on a port of 127.0.0.1. Connections go to the servers, each
// a host:port, in round-robin order. An unreachable server is skipped.
func Listen(servers ...string) (*Proxy, error) { return ListenFrom("127.0.0.1", servers...) }

// ListenFrom is Listen with another loopback address as the source of connections, so
// that they come from another machine.
func ListenFrom(address string, servers ...string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a port of 127.0.0.1: %w", err)
	}
	p := &Proxy{
		listener: listener, servers: servers, from: &net.TCPAddr{IP: net.ParseIP(address)}, connections: map[net.Conn]bool{},
		forwarded: map[*forwarded]bool{},
	}
	p.running.Go(p.accept)
	return p, nil
}

// Address is the host:port on which the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut closes all connections, and every new one until Restore is called.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.Reset()
}

// Restore ends the effect of Cut.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Reset closes all connections. New ones work.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for connection := range p.connections {
		connection.Close()
	}
}

// Slow delays everything that clients send, until it is called again.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// Pause stops the proxy as SIGSTOP stops a process: connections stay open, the kernel
// accepts new ones, and nothing is read until Resume is called.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends the effect of Pause. No data is lost.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// HalfOpen drops all data on the connections from now on, without closing them, as if
// the peer had vanished. New connections work.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.forwarded {
		c.silent.Store(true)
	}
}

// Blackhole is HalfOpen, for new connections too until EndBlackhole is called.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	p.blackhole = true
	p.mu.Unlock()
	p.HalfOpen()
}

// EndBlackhole lets new connections work again.
func (p *Proxy) EndBlackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackhole = false
}

// wait returns when the proxy is not paused.
func (p *Proxy) wait() {
	for {
		p.mu.Lock()
		paused := p.paused
		p.mu.Unlock()
		if paused == nil {
			return
		}
		<-paused
	}
}

// Close ends the proxy and all its connections, and waits for them.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Resume()
	p.Cut()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.forward(client) })
	}
}

func (p *Proxy) forward(client net.Conn) {
	defer p.untrack(client)
	if !p.track(client) {
		return
	}
	p.wait()
	c := &forwarded{}
	p.mu.Lock()
	c.silent.Store(p.blackhole)
	p.forwarded[c] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.forwarded, c)
	}()
	server, err := p.dial()
	if err != nil {
		return
	}
	defer p.untrack(server)
	if !p.track(server) {
		return
	}
	// When one direction ends so does the other: no protocol here uses half of a
	// connection.
	var back sync.WaitGroup
	back.Go(func() {
		p.copy(client, server, c, func() {})
		if !c.silent.Load() { // otherwise the client must not see that the server has closed
			client.Close()
		}
	})
	p.copy(server, client, c, p.sleep)
	server.Close()
	back.Wait()
}

// sleep delays what clients send.
func (p *Proxy) sleep() {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
}

// copy copies the data of one side, and calls before for each part.
func (p *Proxy) copy(to, from net.Conn, c *forwarded, before func()) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
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

// dial connects to the next server that accepts.
func (p *Proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	first := p.next
	p.next++
	p.mu.Unlock()
	var errs []error
	dialer := net.Dialer{Timeout: time.Second, LocalAddr: p.from}
	for i := range p.servers {
		server, err := dialer.Dial("tcp", p.servers[(first+i)%len(p.servers)])
		if err == nil {
			return server, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// track returns false when the proxy is cut.
func (p *Proxy) track(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[connection] = true
	return !p.cut
}

func (p *Proxy) untrack(connection net.Conn) {
	connection.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, connection)
}
