package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// ending reads a connection to its end and returns the bytes, decrypted. The error is set if the
// connection was reset.
func ending(conn net.Conn) (text string, err error) {
	b, err := io.ReadAll(conn)
	if secure, ok := conn.(*tls.Conn); ok && !errors.Is(err, syscall.ECONNRESET) {
		_, err = io.Copy(io.Discard, secure.NetConn())
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return string(b), err
}

// unread is more than the server reads after the last request, and less than it discards.
var unread = strings.Repeat("x", 100<<10)

// A connection that is closed with unread bytes is reset, and the caller may lose the answer.
func TestTheLastAnswerIsNotFollowedByAReset(t *testing.T) {
	t.Parallel()
	begin2 := http2Preface + http2Settings
	const (
		authorize = "POST /authorize HTTP/1.1\r\nHost: a\r\nContent-Length: 102400\r\n\r\n"
		machine   = "POST /authorize/a HTTP/1.1\r\nHost: a\r\nContent-Length: 102400\r\n\r\n"
		live      = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
		lastLive  = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
		invalid   = "no request\r\n\r\n"
	)
	frames := begin2 + request2 + strings.Repeat(frame(frameData, 0, 1<<10), 100)
	for _, tc := range []struct {
		rule, port, protocol, text, want string
	}{
		{"a body of a refused request", "webhooks", "http/1.1", authorize + unread, "HTTP/1.1 401 "},
		{"requests after the last one", "webhooks", "http/1.1", live + unread, "HTTP/1.1 200 "},
		{"frames after the last request", "webhooks", "h2", frames, "client certificate is required"},
		{"a body of a refused request", "bootstrap", "http/1.1", machine + unread, "HTTP/1.1 403 "},
		{"an invalid request", "bootstrap", "http/1.1", invalid + unread, "HTTP/1.1 400 "},
		{"an invalid request", "metrics", "", invalid + unread, "HTTP/1.1 400 "},
		{"a request that asks to close", "metrics", "", lastLive + unread, "HTTP/1.1 200 "},
	} {
		t.Run(tc.port+" "+tc.protocol+" "+tc.rule, func(t *testing.T) {
			t.Parallel()
			s := newTestListeners(t, allPorts)
			s.serve(parts{machines: refuses, metrics: says("numbers")})
			conn := s.dialPort(tc.port, tc.protocol)
			go func() { _, _ = io.WriteString(conn, tc.text) }()
			if got, err := ending(conn); err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("got %.300q, %v, want %s and no reset", got, err, tc.want)
			}
		})
	}
}

// refuses answers machines with 403.
var refuses = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusForbidden)
})

// The connection of a caller that never closes it lingers for a limited time.
func TestLingeringEnds(t *testing.T) {
	t.Parallel()
	for rule, more := range map[string]func(net.Conn){
		"the caller does nothing": func(net.Conn) {},
		"the caller continues to send": func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, unread); err != nil {
					return
				}
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s := newTestListeners(t, allPorts)
			s.serve(parts{machines: refuses, metrics: says("numbers")})
			conn := s.dialPort("metrics", "")
			send(t, conn, "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			answered(t, conn, "ok")
			more(conn)
			eventually(t, "the connection is not counted", func() bool { return guardOf(s.listeners.metrics).held() == 0 })
		})
	}
}

// A lingering connection can be evicted.
func TestLingeringConnectionsAreEvicted(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, allPorts)
	g := guardOf(s.listeners.metrics)
	g.limits.perAddress = 1
	s.serve(parts{machines: refuses, metrics: says("numbers")})
	conn := s.dialPort("metrics", "")
	send(t, conn, "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got, err := ending(conn); err != nil || !strings.Contains(got, "200 OK") {
		t.Errorf("got %q, %v", got, err)
	}
	next := s.dialPort("metrics", "")
	send(t, next, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
	answered(t, next, "ok")
	if n := g.held(); n != 1 {
		t.Errorf("%d connections are held, want 1", n)
	}
}

// The process ends after a drain, and data that was not sent is lost.
func TestADrainWaitsForLastAnswersToBeRead(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		allPorts(c)
		c.Shutdown.Delay.Duration = 0
	})
	g := guardOf(s.listeners.metrics)
	s.serve(parts{machines: refuses, metrics: says("numbers")})
	conn := s.dialPort("metrics", "")
	send(t, conn, "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	answered(t, conn, "ok")
	s.stop()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
	if n := g.held(); n != 0 {
		t.Errorf("the drain ended with %d connections", n)
	}
}
