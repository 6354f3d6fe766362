package server

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

// listenInterval is the interval between attempts to listen on an address in use.
const listenInterval = time.Second

// listen starts to listen. If the address is in use and the endpoint is dispensable, it
// listens as soon as the address is free.
func (o *opening) listen() (net.Listener, error) {
	listener, err := net.Listen("tcp", o.address)
	if err == nil || !o.dispensable || !errors.Is(err, syscall.EADDRINUSE) {
		return listener, err
	}
	o.logger.Error(err, "the address of "+o.name+" is taken: "+
		"the server runs without it until the address is free; choose another address or stop what uses it",
		"address", o.address)
	return &pendingListener{name: o.name, wanted: o.address, logger: o.logger, closed: make(chan struct{})}, nil
}

// pendingListener is a listener whose address is in use by another process at first.
type pendingListener struct {
	name, wanted string
	logger       logr.Logger
	closed       chan struct{}

	mu sync.Mutex
	// inner is nil until the address was free.
	inner net.Listener
	ended bool
}

// Accept implements net.Listener.
func (l *pendingListener) Accept() (net.Conn, error) {
	inner, err := l.wait()
	if err != nil {
		return nil, err
	}
	return inner.Accept()
}

// wait returns the listener when there is one.
func (l *pendingListener) wait() (net.Listener, error) {
	for {
		if inner, err := l.try(); inner != nil || err != nil {
			return inner, err
		}
		select {
		case <-time.After(listenInterval):
		case <-l.closed:
		}
	}
}

// try listens unless it does so already. It returns nil while the address is in use.
func (l *pendingListener) try() (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, net.ErrClosed
	}
	if l.inner == nil {
		inner, err := net.Listen("tcp", l.wanted)
		if err != nil {
			return nil, nil
		}
		l.inner = inner
		l.logger.Info("serving "+l.name, "address", inner.Addr().String())
	}
	return l.inner, nil
}

// Close implements net.Listener.
func (l *pendingListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return net.ErrClosed
	}
	l.ended = true
	close(l.closed)
	if l.inner == nil {
		return nil
	}
	return l.inner.Close()
}

// Addr implements net.Listener. Until the address is free it returns the wanted address.
func (l *pendingListener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		return takenAddress(l.wanted)
	}
	return l.inner.Addr()
}

// takenAddress is an address on which another process listens.
type takenAddress string

// Network implements net.Addr.
func (takenAddress) Network() string { return "tcp" }

// String implements net.Addr.
func (a takenAddress) String() string { return string(a) }
