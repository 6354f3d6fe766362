package server

import (
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
}

// apiServerLimits are for callers of the cluster itself. An API server keeps its
// connections open, puts all its requests on one, and calls at once; nobody else
// has a reason to be slow.
func apiServerLimits() limits {
	return limits{
		header: 10 * time.Second, read: 30 * time.Second, write: time.Minute, idle: 5 * time.Minute, headerBytes: 64 << 10, streams: 1000,
	}
}

// machineLimits are for machines, of which anybody may be one: each has one small
// request, which is answered within the timeout.
func machineLimits(timeout time.Duration) limits {
	const read, idle = 10 * time.Second, 30 * time.Second
	return limits{
		header: 5 * time.Second, read: read, write: read + timeout + 5*time.Second, idle: idle, headerBytes: 8 << 10, streams: 16,
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
		ErrorLog:          connectionLog(o.logger),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: o.limits.streams},
	}}
	var err error
	if o.files != nil {
		section = o.files.section
		if e.certificates, err = loadCertificates(*o.files, o.logger, o.observer); err != nil {
			return nil, err
		}
		e.server.TLSConfig = e.certificates.tlsConfig()
	}
	if e.listener, err = o.listen(); err != nil {
		return nil, fmt.Errorf("listen on %s.address: %w; choose another address, or stop what uses it", section, err)
	}
	return e, nil
}

// serve answers until the server is closed.
func (e *endpoint) serve() error {
	if e.certificates == nil {
		return e.server.Serve(e.listener)
	}
	return e.server.ServeTLS(e.listener, "", "")
}

// address is where the endpoint listens; nil for one that there is not.
func (e *endpoint) address() net.Addr {
	if e == nil {
		return nil
	}
	return e.listener.Addr()
}
