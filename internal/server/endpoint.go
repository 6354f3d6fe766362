package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// endpoint is one listener and what it serves.
type endpoint struct {
	// name says what is served, for the log.
	name     string
	listener net.Listener
	server   *http.Server
	// certificates is nil for plain HTTP.
	certificates *certificates
}

// limits are those of connections.
type limits struct {
	header, read, write, idle time.Duration
	headerBytes               int
	// streams is how many requests one HTTP/2 connection carries at once.
	streams int
	// unauthenticated are the limits until a caller is authenticated.
	unauthenticated connectionLimits
}

const (
	// streamWindow is how much of a body an HTTP/2 connection takes in before somebody
	// reads it, and connectionWindow how much of all bodies. Bodies that wait for room
	// must not use up the latter, or the connection would stop for small ones too.
	streamWindow     = 64 << 10
	connectionWindow = 4<<20 - 1
)

// apiServerLimits are for callers of the cluster itself. An API server keeps its
// connections open, puts all its requests on one, and calls at once; nobody else
// has a reason to be slow.
func apiServerLimits() limits {
	return limits{
		header: 10 * time.Second, read: 30 * time.Second, write: time.Minute, idle: 5 * time.Minute, headerBytes: 64 << 10, streams: 1000,
		// API servers have a certificate. Others have no reason to call, but for probes,
		// which ask once on each connection.
		unauthenticated: connectionLimits{perAddress: 64, total: 512, first: 10 * time.Second, idle: 5 * time.Second, requests: 1, bytes: 64 << 10},
	}
}

// monitoringLimits are for the port of metrics, which has no certificates.
func monitoringLimits() limits {
	l := apiServerLimits()
	l.streams, l.headerBytes = 16, 16<<10
	const requests = 1000
	l.unauthenticated = connectionLimits{
		perAddress: 64, total: 256, first: 10 * time.Second, idle: 2 * time.Minute, requests: requests, bytes: requests * 4 << 10,
	}
	return l
}

// machineLimits are for machines, of which anybody may be one: each has one small
// request, whose body is up to so large, and which is answered within the timeout.
func machineLimits(timeout time.Duration, body int64) limits {
	const (
		read, idle            = 10 * time.Second, 30 * time.Second
		requests, headerBytes = 8, 8 << 10
	)
	return limits{
		header: 5 * time.Second, read: read, write: read + timeout + 5*time.Second, idle: idle, headerBytes: headerBytes, streams: 16,
		// A group of machines that start at once may be behind one address. Each asks for
		// a challenge and for a token.
		unauthenticated: connectionLimits{
			perAddress: 256, total: 2048, first: read, idle: read, requests: requests, bodies: true,
			// A quarter more is for the frames of HTTP and TLS.
			bytes: requests * (headerBytes + body) * 5 / 4,
		},
	}
}

// opening is how an endpoint is made.
type opening struct {
	// name says what is served: "metrics".
	name, address string
	// dispensable tells that the server runs without it while the address is taken.
	dispensable bool
	limits      limits
	// files is nil for plain HTTP.
	files    *certificateFiles
	logger   logr.Logger
	observer certificateObserver
}

// open begins to listen; the endpoint is nil without an address.
func (o *opening) open() (*endpoint, error) {
	if o.address == "" {
		return nil, nil
	}
	section := o.name
	e := &endpoint{name: o.name, server: &http.Server{
		ReadHeaderTimeout: o.limits.header,
		ReadTimeout:       o.limits.read,
		WriteTimeout:      o.limits.write,
		IdleTimeout:       o.limits.idle,
		MaxHeaderBytes:    o.limits.headerBytes,
		ConnContext:       rememberConnection,
		ConnState:         watchRequests,
		ErrorLog:          connectionLog(o.logger),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: o.limits.streams, MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow,
		},
	}}
	var err error
	if o.files != nil {
		section = o.files.section
		if e.certificates, err = loadCertificates(*o.files, o.logger, o.observer); err != nil {
			return nil, err
		}
		e.server.TLSConfig = e.certificates.tlsConfig()
		if err = serveHTTP2(e.server); err != nil {
			return nil, err
		}
	}
	if e.listener, err = o.listen(); err != nil {
		return nil, fmt.Errorf("listen on %s.address: %w; choose another address, or stop what uses it", section, err)
	}
	e.listener = guardedListener{e.listener, newGuard(o.limits.unauthenticated, o.files == nil, o.logger)}
	return e, nil
}

// serve answers until the server is closed.
func (e *endpoint) serve() error {
	if e.certificates == nil {
		return e.server.Serve(e.listener)
	}
	return e.server.ServeTLS(e.listener, "", "")
}

// lingered waits until callers have had the time to read their last answers, or until
// the context ends. It is called when no connection is served any more.
func (e *endpoint) lingered(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.listener.(guardedListener).guard.lingering.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// address is where the endpoint listens; nil for one that there is not.
func (e *endpoint) address() net.Addr {
	if e == nil {
		return nil
	}
	return e.listener.Addr()
}
