package server

import (
	"io"
	"net"
	"time"
)

const (
	// lingerTime is how long an unauthenticated caller may take to read the last answer after
	// the server has closed its side of the connection.
	lingerTime = 2 * time.Second
	// lingerBytes is how much the server reads and discards in that time.
	lingerBytes = 256 << 10
)

// Close implements net.Conn. The connection of an unauthenticated caller lingers: the kernel resets a
// connection that is closed with unread bytes, and a caller that receives the reset first loses the
// last answer. So the server closes its own side, and discards further bytes until the caller closes
// too. Time and bytes are limited, and the connection counts until then.
func (c *guardedConn) Close() error {
	c.computed()
	c.end()
	if c.linger() {
		return nil
	}
	return c.abort()
}

// linger reports whether the connection lingers.
func (c *guardedConn) linger() bool {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || c.known.Load() || !c.written.Load() {
		return false
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if c.lingering || c.aborted {
		return c.lingering
	}
	if half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	c.lingering, c.closing = true, true
	c.timer.Reset(lingerTime)
	c.guard.lingering.Go(func() {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		c.abort()
	})
	return true
}

// abort closes the connection at once.
func (c *guardedConn) abort() error {
	c.computed()
	c.end()
	c.guard.mu.Lock()
	c.aborted = true
	c.guard.remove(c)
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

// expire is called by the timer.
func (c *guardedConn) expire() {
	c.guard.mu.Lock()
	answered := c.closing && !c.lingering
	c.guard.mu.Unlock()
	if answered {
		c.Close()
		return
	}
	c.abort()
}

// SetReadDeadline implements net.Conn. While the connection lingers, only the timer limits it.
func (c *guardedConn) SetReadDeadline(t time.Time) error {
	if c.known.Load() {
		return c.Conn.SetReadDeadline(t)
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if c.lingering {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *guardedConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.Conn.SetWriteDeadline(t)
}
