package server

import (
	"io"
	"net/netip"
	"time"
)

// slowCaller is the wait after which a caller's connection is evicted before any other. Callers that
// make progress are faster.
const slowCaller = time.Second

// callerWait measures how long the server has waited for a caller since the caller last made
// progress. A request and its answer are progress. Bytes are not, so that sending slowly does not
// help. Time in which the server works for the caller does not count.
type callerWait struct {
	// working counts what the server does for the caller: handshakes that are computed or in
	// the queue, and requests whose handlers do not wait for a body.
	working int
	// blocked counts writes in progress: the caller does not read.
	blocked int
	// since is the start of the current wait, before the sum of the earlier waits.
	since  time.Time
	before time.Duration
}

// waiting reports whether the server waits for the caller.
func (w *callerWait) waiting() bool { return w.working == 0 || w.blocked > 0 }

// change adds to the counts.
func (w *callerWait) change(now time.Time, working, blocked int) {
	was := w.waiting()
	w.working += working
	w.blocked += blocked
	switch is := w.waiting(); {
	case was && !is:
		w.before += now.Sub(w.since)
	case is && !was:
		w.since = now
	}
}

// progress restarts the measurement.
func (w *callerWait) progress(now time.Time) { w.since, w.before = now, 0 }

// start returns when the wait would have started without interruptions.
func (w *callerWait) start() time.Time { return w.since.Add(-w.before) }

// longerThan compares how long the server has waited for two callers. If it is equal, the order of
// arrival decides.
func (c *guardedConn) longerThan(other *guardedConn) bool {
	if other == nil {
		return true
	}
	if order := c.wait.start().Compare(other.wait.start()); order != 0 {
		return order < 0
	}
	return c.number < other.number
}

// longestWait returns the connection with the longest wait, and the number of connections on which the
// server waits. It returns nil if there is none.
func longestWait(conns []*guardedConn) (longest *guardedConn, waiting int) {
	for _, c := range conns {
		if !c.wait.waiting() {
			continue
		}
		waiting++
		if c.longerThan(longest) {
			longest = c
		}
	}
	return longest, waiting
}

// victim returns the connection to evict for a new one from the source. It returns nil if the server
// waits on no connection whose eviction would help.
//
// An address with the maximum number of connections loses one of its own. When there are too many in
// total, slow callers of all addresses come first. If there are none, the address loses a connection
// that has most of those on which the server waits; among equal addresses the longest wait decides.
// See queuedVictim for the case that the server waits on none.
func (g *guard) victim(source netip.Prefix, now time.Time) *guardedConn {
	if conns := g.from[source]; len(conns) >= g.limits.perAddress {
		longest, _ := longestWait(conns)
		return longest
	}
	var longest, ofMost *guardedConn
	most := 0
	for _, conns := range g.from {
		c, waiting := longestWait(conns)
		if c == nil {
			continue
		}
		if c.longerThan(longest) {
			longest = c
		}
		if waiting > most || waiting == most && c.longerThan(ofMost) {
			most, ofMost = waiting, c
		}
	}
	switch {
	case longest == nil:
		return g.queuedVictim(source)
	case now.Sub(longest.wait.start()) >= slowCaller:
		return longest
	}
	return ofMost
}

// queuedVictim returns the victim if the server waits on no connection. The address that has the most
// handshakes in the queue loses the last of them, if it still has more than the source after that. So
// one address with many handshakes does not keep others out, and the first handshakes in the queue are
// not lost.
func (g *guard) queuedVictim(source netip.Prefix) *guardedConn {
	var last *guardedConn
	most := len(g.from[source]) + 1
	for _, conns := range g.from {
		var newest *guardedConn
		queued := 0
		for _, c := range conns {
			if c.shaken.Load() {
				continue
			}
			queued++
			if newest == nil || c.number > newest.number {
				newest = c
			}
		}
		if queued > most || queued == most && last != nil && newest.number > last.number {
			most, last = queued, newest
		}
	}
	return last
}

// changeWait records that the server starts or stops to work for the caller, or to write.
func (c *guardedConn) changeWait(working, blocked int) {
	if c.known.Load() {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	c.wait.change(time.Now(), working, blocked)
}

// changeRequests records that a request starts or has been answered.
func (c *guardedConn) changeRequests(by int) {
	if c.known.Load() {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	now := time.Now()
	c.wait.change(now, by, 0)
	c.wait.progress(now)
}

// awaitedBody is a body: while it is read, the server waits for the caller.
type awaitedBody struct {
	io.ReadCloser
	conn *guardedConn
}

// Read implements io.Reader.
func (b *awaitedBody) Read(p []byte) (int, error) {
	if b.conn.last.Load() {
		return 0, errReadsTooMuch
	}
	b.conn.changeWait(-1, 0)
	defer b.conn.changeWait(1, 0)
	return b.ReadCloser.Read(p)
}
