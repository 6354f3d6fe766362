package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// connectionLimits limit the number of connections of callers that are not authenticated.
type connectionLimits struct {
	// perAddress and total limit the number of connections. An IPv6 address counts with all of its /64.
	perAddress, total int
	// handshake is true if the TLS handshake decides who may call. Then connections count until its end.
	handshake bool
}

// limitedListener enforces the limits. If there are too many connections, it closes the oldest one on
// which no request is being answered, so that a caller that holds connections open does not keep others
// out. If there is none, it closes the new one.
type limitedListener struct {
	net.Listener
	limits connectionLimits
	logger logr.Logger
	// unused is how many connections are open and have had no request yet.
	unused atomic.Int64

	mu sync.Mutex
	// conns are the connections that count, in the order of arrival.
	conns []*limitedConn
	// closed counts closed connections since the last log line.
	closed int
	logs   rate.Sometimes
}

func newLimitedListener(listener net.Listener, limits connectionLimits, logger logr.Logger) *limitedListener {
	return &limitedListener{Listener: listener, limits: limits, logger: logger, logs: rate.Sometimes{Interval: time.Minute}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limitedConn{Conn: conn, listener: l, source: sourceOf(conn.RemoteAddr())}
		victim := l.add(c)
		if victim != nil {
			victim.Conn.Close() // its server closes it too
		}
		if victim != c {
			return c, nil
		}
	}
}

// add adds a connection, and returns the one to close: nil for none, or the new one.
func (l *limitedListener) add(c *limitedConn) (victim *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest, oldestHere *limitedConn
	here := 0
	for _, other := range l.conns {
		same := other.source == c.source
		if same {
			here++
		}
		if other.active {
			continue
		}
		if oldest == nil {
			oldest = other
		}
		if same && oldestHere == nil {
			oldestHere = other
		}
	}
	switch {
	case here >= l.limits.perAddress:
		victim = oldestHere
	case len(l.conns) >= l.limits.total:
		victim = oldest
	default:
		l.conns = append(l.conns, c)
		l.unused.Add(1)
		return nil
	}
	l.closed++
	l.logs.Do(func() {
		l.logger.Info("too many connections of callers that are not authenticated: the oldest without a request are closed",
			"address", c.source.String(), "closed", l.closed, "perAddress", l.limits.perAddress, "total", l.limits.total)
		l.closed = 0
	})
	if victim == nil {
		return c
	}
	l.remove(victim)
	l.conns = append(l.conns, c)
	l.unused.Add(1)
	return victim
}

// remove makes a connection not count any more.
func (l *limitedListener) remove(c *limitedConn) {
	if i := slices.Index(l.conns, c); i >= 0 {
		l.conns = slices.Delete(l.conns, i, i+1)
	}
}

// sourceOf returns the prefix by which connections are counted.
func sourceOf(address net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	source, _ := addr.Prefix(bits) // every such address has so many bits
	return source
}

// limitedConn is a connection of a limitedListener.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	source   netip.Prefix
	// active is true while a request is answered, and not its body read. The lock of the listener protects it.
	active bool
	// used is true if there was a request, or the connection is closed.
	used atomic.Bool
	// good is the last verification of the caller's certificate.
	good atomic.Pointer[verified]
}

func (c *limitedConn) begin(r *http.Request) {
	c.use()
	if !c.listener.limits.handshake && r.Body != http.NoBody {
		r.Body = &awaitedBody{r.Body, c}
	}
}

// awaitedBody is a body. While it is read, the connection may be closed, so that callers that send slowly
// do not keep others out.
type awaitedBody struct {
	io.ReadCloser
	conn *limitedConn
}

// Read implements io.Reader.
func (b *awaitedBody) Read(p []byte) (int, error) {
	b.conn.setActive(false)
	defer b.conn.setActive(true)
	return b.ReadCloser.Read(p)
}

func (c *limitedConn) setActive(active bool) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.active = active
	if c.listener.limits.handshake {
		c.listener.remove(c)
	}
}

// use is called with each request, and at the end.
func (c *limitedConn) use() {
	if !c.used.Swap(true) {
		c.listener.unused.Add(-1)
	}
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.use()
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// watchConnection is the ConnState of a http.Server. HTTP/1.1 calls it when the header of a request has
// been read, HTTP/2 after the handshake too.
func watchConnection(conn net.Conn, state http.ConnState) {
	if c := limitedUnder(conn); c != nil && (state == http.StateActive || state == http.StateIdle) {
		c.setActive(state == http.StateActive)
	}
}

// limitedUnder returns nil for a connection of another listener.
func limitedUnder(conn net.Conn) *limitedConn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	limited, _ := conn.(*limitedConn)
	return limited
}

type connectionKey struct{}

// rememberConnection is the ConnContext of a http.Server.
func rememberConnection(ctx context.Context, conn net.Conn) context.Context {
	if c := limitedUnder(conn); c != nil {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// connectionOf returns the connection of a request; one of its own if there is none in the context.
func connectionOf(ctx context.Context) *limitedConn {
	if known, ok := ctx.Value(connectionKey{}).(*limitedConn); ok {
		return known
	}
	return &limitedConn{listener: &limitedListener{}}
}
