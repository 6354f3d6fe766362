package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// endpoint is a listener with its server.
type endpoint struct {
	// name describes what is served, for the log.
	name     string
	listener *limitedListener
	server   *http.Server
	// certificates is nil for plain HTTP.
	certificates *certificates
	// notAccepting is closed when no connection is accepted any more.
	notAccepting chan struct{}
	// firstRequests limits how long a shutdown waits for the first requests of new connections.
	firstRequests time.Duration
}

// limits are the limits of connections.
type limits struct {
	header, read, write, idle time.Duration
	headerBytes               int
	// streams is the maximum number of concurrent requests of an HTTP/2 connection.
	streams int
	// protocols are the versions of HTTP over TLS.
	protocols   []string
	connections connectionLimits
}

const (
	// streamWindow is how much of one body an HTTP/2 connection buffers before it is read,
	// and connectionWindow how much of all bodies. Bodies that wait for memory must not fill
	// the latter, because then small bodies could not arrive.
	streamWindow     = 64 << 10
	connectionWindow = 4<<20 - 1
)

// apiServerLimits are the limits for API servers. An API server keeps its connections open, sends all
// its requests on one, and sends at once; other callers have no reason to be slow.
func apiServerLimits() limits {
	return limits{
		header: 10 * time.Second, read: 30 * time.Second, write: time.Minute, idle: 5 * time.Minute,
		headerBytes: 64 << 10, streams: 1000, protocols: []string{"h2", "http/1.1"},
		connections: connectionLimits{perAddress: 64, total: 512, handshake: true},
	}
}

// monitoringLimits are the limits of the port for metrics and health, which has no certificates.
func monitoringLimits() limits {
	l := apiServerLimits()
	l.idle, l.headerBytes = 2*time.Minute, 16<<10
	l.connections = connectionLimits{perAddress: 64, total: 256}
	return l
}

// machineLimits are the limits for machines, which anybody may pretend to be: each sends a small
// request, with a body of limited size, which is answered within the timeout. There is no HTTP/2, in
// which one connection could carry many requests at once. Several machines that start at once may have
// one address.
func machineLimits(timeout time.Duration) limits {
	const read = 10 * time.Second
	return limits{
		header: 5 * time.Second, read: read, write: read + timeout + 5*time.Second, idle: read, headerBytes: 8 << 10,
		protocols: []string{"http/1.1"}, connections: connectionLimits{perAddress: 256, total: 2048},
	}
}

// firstRequestTime is the firstRequests of all endpoints.
const firstRequestTime = time.Second

// opening are the parameters of an endpoint.
type opening struct {
	// name describes what is served: "metrics".
	name, address string
	limits        limits
	// files is nil for plain HTTP.
	files    *certificateFiles
	logger   logr.Logger
	observer certificateObserver
}

// open starts to listen. It returns nil if there is no address.
func (o *opening) open() (*endpoint, error) {
	if o.address == "" {
		return nil, nil
	}
	section := o.name
	e := &endpoint{name: o.name, notAccepting: make(chan struct{}), firstRequests: firstRequestTime, server: &http.Server{
		ReadHeaderTimeout: o.limits.header,
		ReadTimeout:       o.limits.read,
		WriteTimeout:      o.limits.write,
		IdleTimeout:       o.limits.idle,
		MaxHeaderBytes:    o.limits.headerBytes,
		ConnContext:       rememberConnection,
		ConnState:         watchConnection,
		ErrorLog:          connectionLog(o.logger),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: o.limits.streams, MaxReceiveBufferPerStream: streamWindow,
			MaxReceiveBufferPerConnection: connectionWindow,
		},
	}}
	var err error
	if o.files != nil {
		section, o.files.protocols = o.files.section, o.limits.protocols
		if e.certificates, err = loadCertificates(*o.files, o.logger, o.observer); err != nil {
			return nil, err
		}
		e.server.TLSConfig = e.certificates.tlsConfig()
		e.server.Protocols = new(http.Protocols)
		e.server.Protocols.SetHTTP1(true)
		e.server.Protocols.SetHTTP2(slices.Contains(o.limits.protocols, "h2"))
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s.address: %w; choose another address, or stop what uses it", section, err)
	}
	e.listener = newLimitedListener(listener, o.limits.connections, o.logger)
	return e, nil
}

// serve answers until the server is closed.
func (e *endpoint) serve() error {
	defer close(e.notAccepting)
	if e.certificates == nil {
		return e.server.Serve(e.listener)
	}
	return e.server.ServeTLS(e.listener, "", "")
}

// shutdown stops accepting connections, and completes the requests in flight. [http.Server.Shutdown] alone would
// close connections in HTTP/2 on which the first request is just being sent.
func (e *endpoint) shutdown(ctx context.Context) error {
	_ = e.listener.Close() // an error means that it is closed
	<-e.notAccepting
	used := func(context.Context) (bool, error) { return e.listener.unused.Load() == 0, nil }
	_ = wait.PollUntilContextTimeout(ctx, time.Millisecond, e.firstRequests, true, used)
	return e.server.Shutdown(ctx)
}
