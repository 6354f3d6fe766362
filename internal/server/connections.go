package server

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// connectionLimits are those of connections whose caller is not authenticated. A
// connection is authenticated in its handshake, by a certificate that the authorities
// of the endpoint signed.
type connectionLimits struct {
	// perAddress and total are how many there are at most. An IPv6 address counts with
	// all of its /64.
	perAddress, total int
	// first is how long a connection may take to its first request, idle how long it
	// may be without one after that.
	first, idle time.Duration
	// requests is how many requests are answered before the connection is closed.
	requests int32
	// bytes is how much is read after the handshake; 0: without limit.
	bytes int64
	// bodies tells that requests have bodies that are read. Without it nothing is read
	// after the last request.
	bodies bool
}

const (
	// handshakeBytes is how much of a handshake is read. A certificate may have 64 KiB.
	handshakeBytes = 128 << 10
	// closingTime is how long the server keeps a connection after its last answer, before
	// it closes its side.
	closingTime = 500 * time.Millisecond
	// closedLogInterval is how often closed connections are logged.
	closedLogInterval = time.Minute
)

// guard keeps connections that are not authenticated within their limits. When there
// are too many, it evicts one whose caller the server waits for: a caller that holds
// connections open does not keep others out, not even those behind the same address. See
// guard.victim.
type guard struct {
	limits connectionLimits
	plain  bool
	logger logr.Logger
	// handshakes has a slot for each handshake that may be computed at once, so that
	// handshakes leave processor time to requests. A handshake has one from each message
	// of the caller to the server's next, or to the end.
	handshakes chan struct{}

	mu    sync.Mutex
	from  map[netip.Prefix][]*guardedConn
	total int
	// accepted counts all connections.
	accepted uint64
	// closed counts since the last line of the log.
	closed int
	logged time.Time
	// lingering are the connections that linger.
	lingering sync.WaitGroup
}

// newGuard makes a guard; plain, of connections without TLS.
func newGuard(limits connectionLimits, plain bool, logger logr.Logger) *guard {
	return &guard{
		limits: limits, plain: plain, logger: logger, handshakes: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		from: map[netip.Prefix][]*guardedConn{},
	}
}

// guardedListener accepts what the guard admits.
type guardedListener struct {
	net.Listener
	guard *guard
}

// Accept implements net.Listener.
func (l guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.guard.admit(conn); admitted != nil {
			return admitted, nil
		}
	}
}

// admit returns nil for a connection that it has closed.
func (g *guard) admit(conn net.Conn) net.Conn {
	c := &guardedConn{Conn: conn, guard: g, source: sourceOf(conn.RemoteAddr()), closed: make(chan struct{})}
	c.shaken.Store(g.plain)
	if c.left.Store(handshakeBytes); g.plain {
		c.limitBytes()
	}
	victim, admitted := g.add(c)
	if victim != nil {
		victim.abort()
	}
	if !admitted {
		conn.Close()
		return nil
	}
	return c
}

// add makes room for a connection by evicting another, if it has to. A connection for
// which there is no room is not admitted.
func (g *guard) add(c *guardedConn) (victim *guardedConn, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.from[c.source]) >= g.limits.perAddress || g.total >= g.limits.total {
		if victim = g.victim(c.source, now); victim == nil {
			g.log(c.source)
			return nil, false
		}
		g.log(victim.source)
		g.remove(victim)
	}
	g.from[c.source] = append(g.from[c.source], c)
	g.total++
	g.accepted++
	c.number = g.accepted
	c.wait.progress(now)
	c.timer = time.AfterFunc(g.limits.first, c.expire)
	return victim, true
}

// log tells now and then that connections are closed.
func (g *guard) log(source netip.Prefix) {
	g.closed++
	if now := time.Now(); now.Sub(g.logged) >= closedLogInterval {
		g.logger.Info("too many connections of callers that are not authenticated: those are closed on which the server waits longest, or new ones if it waits on none",
			"address", source.String(), "closed", g.closed, "perAddress", g.limits.perAddress, "total", g.limits.total)
		g.logged, g.closed = now, 0
	}
}

// remove takes a connection out. It may be called twice.
func (g *guard) remove(c *guardedConn) {
	conns := g.from[c.source]
	i := slices.Index(conns, c)
	if i < 0 {
		return
	}
	g.total--
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(g.from, c.source)
	} else {
		g.from[c.source] = conns
	}
	c.timer.Stop()
}

// sourceOf is what connections are counted by.
func sourceOf(address net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	source, _ := addr.Prefix(bits) // so many bits every such address has
	return source
}

// guardedConn is a connection under a guard.
type guardedConn struct {
	net.Conn
	guard  *guard
	source netip.Prefix
	// shown tells that the caller has shown a certificate that authenticates it, once it
	// has proven that it has the key, which is at the end of the handshake.
	shown atomic.Bool
	// known tells that the caller is authenticated: nothing is limited any more.
	known atomic.Bool
	// left is how many bytes may still be read.
	left atomic.Int64
	// requests counts those that have begun, underWay those whose handlers run.
	requests, underWay atomic.Int32
	// last tells that nothing is read any more, because the last request has begun; ending,
	// that the connection is closed when no request is under way.
	last, ending atomic.Bool
	// shaken tells that the handshake has ended, computing that the connection has a slot
	// for it.
	shaken, computing atomic.Bool
	// written tells that something has been written.
	written atomic.Bool
	// closed is closed with the connection, once. The connection may linger after that.
	closed chan struct{}
	once   sync.Once

	// Under the guard's lock. Number is the order of arrival. Closing tells that the timer
	// is that of the end. Rests counts how often no request was under way any more, which
	// in HTTP/2 is also so when the connection begins.
	number                      uint64
	wait                        callerWait
	closing, lingering, aborted bool
	rests                       int32
	timer                       *time.Timer
}

var errReadsTooMuch = errors.New("the caller sent too much without being authenticated")

// Read implements net.Conn.
func (c *guardedConn) Read(b []byte) (int, error) {
	c.computed()
	if c.known.Load() {
		return c.Conn.Read(b)
	}
	left := c.left.Load()
	if left <= 0 {
		// What else comes costs nothing, and the answer still goes out.
		if c.last.Load() {
			c.closeSoon()
		} else {
			c.cutOff()
		}
		<-c.closed
		return 0, errReadsTooMuch
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.left.Add(-int64(n))
	if err == nil && !c.shaken.Load() {
		err = c.compute()
	}
	return n, err
}

// Write implements net.Conn.
func (c *guardedConn) Write(b []byte) (int, error) {
	c.computed()
	c.written.Store(true)
	c.changeWait(0, 1)
	defer c.changeWait(0, -1)
	return c.Conn.Write(b)
}

// compute waits for a slot for the handshake.
func (c *guardedConn) compute() error {
	c.changeWait(1, 0)
	select {
	case c.guard.handshakes <- struct{}{}:
		c.computing.Store(true)
		return nil
	case <-c.closed:
		c.changeWait(-1, 0)
		return net.ErrClosed
	}
}

// computed gives the slot back: the server waits for the caller now.
func (c *guardedConn) computed() {
	if c.computing.CompareAndSwap(true, false) {
		<-c.guard.handshakes
		c.changeWait(-1, 0)
	}
}

// identified is called when it is known which certificate the caller shows, if any. The
// handshake has not ended: whoever has seen the certificate can get as far as that.
func (c *guardedConn) identified(authenticates bool) {
	if authenticates {
		c.shown.Store(true)
		return
	}
	c.limitBytes()
}

// authenticated ends what limits the connection, if the caller has shown a certificate.
// It is called after the handshake.
func (c *guardedConn) authenticated() bool {
	if !c.known.Load() && c.shown.Load() {
		c.guard.mu.Lock()
		c.guard.remove(c)
		c.guard.mu.Unlock()
		c.known.Store(true)
	}
	return c.known.Load()
}

// limitBytes begins to count what is read after the handshake.
func (c *guardedConn) limitBytes() {
	if c.guard.limits.bytes > 0 {
		c.left.Store(c.guard.limits.bytes)
	} else {
		c.left.Store(math.MaxInt64)
	}
}

// begin counts a request. It reports whether it is the last on this connection.
func (c *guardedConn) begin() (last bool) {
	c.underWay.Add(1)
	c.changeRequests(1)
	if c.known.Load() || c.requests.Add(1) < c.guard.limits.requests {
		return false
	}
	if !c.guard.limits.bodies {
		c.last.Store(true)
		c.left.Store(0)
	}
	return true
}

// finish is called when the handler of a request has ended.
func (c *guardedConn) finish() {
	c.changeRequests(-1)
	if c.underWay.Add(-1) == 0 && c.ending.Load() {
		c.cutOff()
	}
}

// setActive tells that a request is under way, or that none is.
func (c *guardedConn) setActive(active bool) {
	c.shaken.Store(true)
	c.computed()
	if c.authenticated() {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	switch {
	case c.closing || c.known.Load():
	case active:
		c.timer.Stop()
	case c.rests > c.guard.limits.requests:
		// There were more than requests: those that HTTP/2 refuses reach no handler.
		c.closing = true
		c.timer.Reset(closingTime)
	default:
		c.rests++
		c.timer.Reset(c.guard.limits.idle)
	}
}

// closeSoon closes the connection when its last answer has been sent, whether or not
// the caller does. Requests under way are answered before.
func (c *guardedConn) closeSoon() {
	c.ending.Store(true)
	if c.underWay.Load() == 0 {
		c.cutOff()
	}
}

// cutOff closes the connection after the time for its last answer.
func (c *guardedConn) cutOff() {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if !c.closing {
		c.closing = true
		c.timer.Reset(closingTime)
	}
}
