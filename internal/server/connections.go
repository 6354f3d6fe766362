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

// connectionLimits are the limits of connections of unauthenticated callers. A caller is
// authenticated in the handshake, by a certificate that the authorities of the endpoint signed.
type connectionLimits struct {
	// perAddress and total limit the number of connections. An IPv6 address counts with
	// all of its /64.
	perAddress, total int
	// first limits the time to the first request, idle the time without a request after
	// that.
	first, idle time.Duration
	// requests is how many requests are answered before the connection is closed.
	requests int32
	// bytes is how much is read after the handshake; 0: no limit.
	bytes int64
	// bodies is true if requests have bodies that are read. Otherwise nothing is read
	// after the last request.
	bodies bool
}

const (
	// handshakeBytes limits the size of a handshake. A certificate may have 64 KiB.
	handshakeBytes = 128 << 10
	// closingTime is the time between the last answer and the end of the connection.
	closingTime = 500 * time.Millisecond
	// closedLogInterval is how often closed connections are logged.
	closedLogInterval = time.Minute
)

// guard enforces the limits of unauthenticated connections. When there are too many, it evicts one
// whose caller the server waits for. So a caller that holds connections open does not keep others
// out, not even those with the same address. See guard.victim.
type guard struct {
	limits connectionLimits
	plain  bool
	logger logr.Logger
	// handshakes has a slot for each handshake that may be computed at once, so that
	// processor time is left for requests. A handshake holds a slot from each message of the
	// caller to the next message of the server, or to the end.
	handshakes chan struct{}

	mu    sync.Mutex
	from  map[netip.Prefix][]*guardedConn
	total int
	// accepted counts all connections.
	accepted uint64
	// closed counts closed connections since the last log line.
	closed int
	logged time.Time
	// lingering are the connections that linger.
	lingering sync.WaitGroup
	// unused is how many connections are open and have had no request yet.
	unused atomic.Int64
}

// newGuard returns a guard; plain means connections without TLS.
func newGuard(limits connectionLimits, plain bool, logger logr.Logger) *guard {
	return &guard{
		limits: limits, plain: plain, logger: logger, handshakes: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		from: map[netip.Prefix][]*guardedConn{},
	}
}

// guardedListener accepts the connections that the guard admits.
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

// admit returns nil if it has closed the connection.
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
	g.unused.Add(1)
	return c
}

// add adds a connection. If there are too many, it evicts another one. If none can be evicted, the
// connection is not admitted.
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

// log logs closed connections, at most once per closedLogInterval.
func (g *guard) log(source netip.Prefix) {
	g.closed++
	if now := time.Now(); now.Sub(g.logged) >= closedLogInterval {
		g.logger.Info("too many connections of callers that are not authenticated: "+
			"those are closed on which the server waits longest, or new ones if it waits on none",
			"address", source.String(), "closed", g.closed, "perAddress", g.limits.perAddress, "total", g.limits.total)
		g.logged, g.closed = now, 0
	}
}

// remove removes a connection. It may be called twice.
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

// guardedConn is a connection under a guard.
type guardedConn struct {
	net.Conn
	guard  *guard
	source netip.Prefix
	// shown is true if the caller has sent a certificate that authenticates it, provided that
	// the end of the handshake proves that it has the key.
	shown atomic.Bool
	// known is true if the caller is authenticated. Then there are no limits.
	known atomic.Bool
	// left is how many bytes may still be read.
	left atomic.Int64
	// requests counts requests, inFlight those whose handlers run.
	requests, inFlight atomic.Int32
	// last is true if nothing is read any more, because the last request has begun. ending is
	// true if the connection is closed when no request is in flight.
	last, ending atomic.Bool
	// shaken is true after the handshake, computing while the connection holds a slot for
	// it.
	shaken, computing atomic.Bool
	// written is true if something has been written, used if there was a request or the connection is closed.
	written, used atomic.Bool
	// closed is closed with the connection, once. The connection may linger after that.
	closed chan struct{}
	once   sync.Once

	// Protected by the guard's lock. number is the order of arrival. closing is true if the
	// timer is that of the end. rests counts how often the connection became idle; in HTTP/2
	// it also does so at the beginning.
	number                      uint64
	wait                        callerWait
	closing, lingering, aborted bool
	rests                       int32
	timer                       *time.Timer
}

var errReadsTooMuch = errors.New("the unauthenticated caller sent too much")

// Read implements net.Conn.
func (c *guardedConn) Read(b []byte) (int, error) {
	c.computed()
	if c.known.Load() {
		return c.Conn.Read(b)
	}
	left := c.left.Load()
	if left <= 0 {
		// Nothing more is read, and the answer is still sent.
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

// computed releases the slot: the server waits for the caller now.
func (c *guardedConn) computed() {
	if c.computing.CompareAndSwap(true, false) {
		<-c.guard.handshakes
		c.changeWait(-1, 0)
	}
}

// identified is called when the caller has sent its certificate, or none. The handshake has not ended
// yet: the caller has not proved that it has the key.
func (c *guardedConn) identified(authenticates bool) {
	if authenticates {
		c.shown.Store(true)
		return
	}
	c.limitBytes()
}

// authenticated removes the limits if the caller has sent a certificate. It is called after the
// handshake.
func (c *guardedConn) authenticated() bool {
	if !c.known.Load() && c.shown.Load() {
		c.guard.mu.Lock()
		c.guard.remove(c)
		c.guard.mu.Unlock()
		c.known.Store(true)
	}
	return c.known.Load()
}

// limitBytes starts the limit of bytes after the handshake.
func (c *guardedConn) limitBytes() {
	if c.guard.limits.bytes > 0 {
		c.left.Store(c.guard.limits.bytes)
	} else {
		c.left.Store(math.MaxInt64)
	}
}

// begin counts a request. It reports whether the request is the last one on this connection.
func (c *guardedConn) begin() (last bool) {
	c.inFlight.Add(1)
	c.use()
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

// use is called with the first request, and at the end.
func (c *guardedConn) use() {
	if c.used.CompareAndSwap(false, true) {
		c.guard.unused.Add(-1)
	}
}

// end tells those who wait for the connection that it is closed.
func (c *guardedConn) end() {
	c.once.Do(func() {
		close(c.closed)
		c.use()
	})
}

// finish is called when the handler of a request has ended.
func (c *guardedConn) finish() {
	c.changeRequests(-1)
	if c.inFlight.Add(-1) == 0 && c.ending.Load() {
		c.cutOff()
	}
}

// setActive records whether a request is in flight.
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
		// HTTP/2 has refused requests, which do not reach a handler.
		c.closing = true
		c.timer.Reset(closingTime)
	default:
		c.rests++
		c.timer.Reset(c.guard.limits.idle)
	}
}

// closeSoon closes the connection when its last answer has been sent, even if the caller does not.
// Requests in flight are answered first.
func (c *guardedConn) closeSoon() {
	c.ending.Store(true)
	if c.inFlight.Load() == 0 {
		c.cutOff()
	}
}

// cutOff closes the connection after closingTime.
func (c *guardedConn) cutOff() {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if !c.closing {
		c.closing = true
		c.timer.Reset(closingTime)
	}
}
