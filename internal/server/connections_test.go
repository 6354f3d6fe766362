package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// held returns the number of connections that count.
func (l *limitedListener) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// fakeConn is a fake connection from an address.
type fakeConn struct {
	net.Conn
	address string
	closed  atomic.Bool
}

func (m *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(m.address))
}

func (m *fakeConn) Close() error {
	m.closed.Store(true)
	return nil
}

// fakeListener accepts fake connections, and is closed after the last one.
type fakeListener struct {
	net.Listener
	conns []*fakeConn
}

func (f *fakeListener) Accept() (net.Conn, error) {
	if len(f.conns) == 0 {
		return nil, net.ErrClosed
	}
	next := f.conns[0]
	f.conns = f.conns[1:]
	return next, nil
}

func TestWhichConnectionIsClosed(t *testing.T) {
	t.Parallel()
	const (
		a, alsoA    = "10.0.0.1:1000", "[::ffff:10.0.0.1]:1001"
		b, c, d     = "10.0.0.2:1000", "10.0.0.3:1000", "10.0.0.4:1000"
		six         = "[2001:db8::1]:1000"
		sameNetwork = "[2001:db8::2]:1000"
	)
	for _, tc := range []struct {
		rule   string
		from   []string
		active []int // the connections on which a request is answered, before the last connection comes
		closed []int
	}{
		{"within the limits, none", []string{a, a, b, c}, nil, nil},
		{"of an address: the oldest", []string{b, a, a, a}, nil, []int{1}},
		{"an IPv4 address in IPv6 is the same", []string{a, alsoA, a}, nil, []int{0}},
		{"IPv6 addresses count by their network", []string{six, sameNetwork, six}, nil, []int{0}},
		{"not one with a request", []string{a, a, a}, []int{0}, []int{1}},
		{"if all have a request, the new one", []string{a, a, a}, []int{0, 1}, []int{2}},
		{"if all of the address have a request, none of another one", []string{a, a, b, a}, []int{0, 1}, []int{3}},
		{"in total: the oldest", []string{b, a, a, c, d}, nil, []int{0}},
		{"in total: not one with a request", []string{b, a, a, c, d}, []int{0}, []int{1}},
		{"in total: if all have a request, the new one", []string{b, a, a, c, d}, []int{0, 1, 2, 3}, []int{4}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			inner := &fakeListener{}
			for _, address := range tc.from {
				inner.conns = append(inner.conns, &fakeConn{address: address})
			}
			all := inner.conns
			l := newLimitedListener(inner, connectionLimits{perAddress: 2, total: 4}, logr.Discard())
			var accepted []net.Conn
			for {
				if len(inner.conns) == 1 {
					for _, i := range tc.active {
						watchConnection(accepted[i], http.StateActive)
					}
				}
				conn, err := l.Accept()
				if err != nil {
					break
				}
				accepted = append(accepted, conn)
			}
			var closed []int
			for i, conn := range all {
				if conn.closed.Load() {
					closed = append(closed, i)
				}
			}
			if fmt.Sprint(closed) != fmt.Sprint(tc.closed) || l.held() != len(all)-len(closed) {
				t.Errorf("closed %v, want %v; %d count", closed, tc.closed, l.held())
			}
			for _, conn := range accepted {
				conn.Close()
				conn.Close() // the server may do so twice
			}
			if l.held() != 0 || l.unused.Load() != 0 {
				t.Errorf("after the end %d count, and %d are unused", l.held(), l.unused.Load())
			}
		})
	}
}

// dial opens a connection and completes the handshake.
func (s *testListeners) dial(e *endpoint, certificate *tls.Certificate, protocol string) *tls.Conn {
	s.t.Helper()
	config := &tls.Config{RootCAs: pool(s.server), ServerName: "127.0.0.1", NextProtos: []string{protocol}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	conn, err := tls.Dial("tcp", e.listener.Addr().String(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// connect opens a connection without a handshake.
func (s *testListeners) connect(e *endpoint) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", e.listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// closedByServer waits until the server closes the connection.
func closedByServer(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil // EOF or a reset
}

// answered reads an HTTP/1.1 answer with the text from a connection.
func answered(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	var answer strings.Builder
	for b := make([]byte, 1<<10); !strings.Contains(answer.String(), "\r\n\r\n"+text); {
		n, err := conn.Read(b)
		answer.Write(b[:n])
		if err != nil {
			t.Errorf("got %q, %v", answer.String(), err)
			return
		}
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
	}
}

// A caller that completes no handshake, or sends no request, is cut off.
func TestSilentConnectionsEnd(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, allPorts)
	for _, e := range s.endpoints() {
		e.server.ReadHeaderTimeout, e.server.IdleTimeout = 3*time.Second, 3*time.Second // handshakes under load end before
	}
	s.serve(parts{machines: says("token"), metrics: says("numbers")})
	for rule, conn := range map[string]net.Conn{
		"webhooks, before the handshake":  s.connect(s.listeners.webhook),
		"bootstrap, before the handshake": s.connect(s.listeners.bootstrap),
		"bootstrap, before a request":     s.dial(s.listeners.bootstrap, nil, "http/1.1"),
		"metrics":                         s.connect(s.listeners.metrics),
	} {
		if err := closedByServer(conn); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
	for _, e := range s.endpoints() {
		eventually(t, "connections to "+e.name+" do not count", func() bool { return e.listener.held() == 0 })
	}
}

// An authenticated connection is not limited from the end of the handshake on.
func TestConnectionsWithACertificateAreNotLimited(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	l := s.listeners.webhook.listener
	l.limits.perAddress = 2
	s.serve(parts{})
	known := s.caller(s.callers.client("kube-apiserver"))
	for range 5 {
		if got, err := s.post(known, "/authorize", "question"); err != nil || got.status != 200 || got.proto != "HTTP/2.0" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	eventually(t, "the connection does not count", func() bool { return l.held() == 0 })
	for range 4 {
		s.connect(s.listeners.webhook)
	}
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	if got, err := s.post(known, "/authorize", large); err != nil || got.body != large {
		t.Errorf("got %d bytes with status %d, %v", len(got.body), got.status, err)
	}
}

// A certificate is not secret: a caller without its key is not admitted.
func TestACertificateAloneDoesNotAuthenticate(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	var served atomic.Int32
	s.serve(parts{observe: counting(&served)})
	stolen := *s.callers.client("kube-apiserver")
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stolen.PrivateKey = other
	if got, err := s.post(s.caller(&stolen), "/authorize", "question"); err == nil || served.Load() != 0 {
		t.Errorf("got %+v, and %d requests were handled", got, served.Load())
	}
	eventually(t, "the connection does not count", func() bool { return s.listeners.webhook.listener.held() == 0 })
}

func counting(served *atomic.Int32) func(string, http.Handler) http.Handler {
	return func(_ string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			next.ServeHTTP(w, r)
		})
	}
}

// Certificates of the same authorities with another name, such as certificates of nodes, are refused in the
// handshake. The log says why.
func TestADisallowedNameIsRefusedInTheHandshake(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	var served atomic.Int32
	s.serve(parts{observe: counting(&served)})
	for range 3 {
		if got, err := s.post(s.caller(s.callers.client("system:node:a")), "/authorize", "question"); err == nil {
			t.Errorf("got %+v", got)
		}
	}
	eventually(t, "the connections do not count", func() bool { return s.listeners.webhook.listener.held() == 0 })
	const why = `\"system:node:a\" may not call: add the common name to webhook.allowedClientNames`
	if log := s.log.String(); strings.Count(log, why) != 1 || served.Load() != 0 {
		t.Errorf("%d requests were handled, want none; the log has, want one line:\n%s", served.Load(), log)
	}
	if got, err := s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", "question"); err != nil || got.status != 200 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestManyCertificatesAreNotVerified(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.serve(parts{})
	for shown, good := range map[int]bool{maxShown: true, maxShown + 1: false} {
		certificate := s.callers.client("kube-apiserver")
		for len(certificate.Certificate) < shown {
			certificate.Certificate = append(certificate.Certificate, s.callers.certificate.Raw)
		}
		got, err := s.post(s.caller(certificate), "/authorize", "question")
		if (err == nil && got.status == 200) != good {
			t.Errorf("with %d certificates: got %+v, %v", shown, got, err)
		}
	}
}

// A caller cannot make the server log a line that looks like a panic.
func TestCallersDoNotForgePanics(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.serve(parts{})
	conn := s.dial(s.listeners.webhook, s.callers.client("kube-apiserver"), "h2")
	send(t, conn, "panic serving everything") // as long as the preface
	if err := closedByServer(conn); err != nil {
		t.Error(err)
	}
	if text := s.log.String(); strings.Contains(text, "a request was not answered") {
		t.Errorf("logged %s", text)
	}
}

const (
	requestWithoutBody = "GET /authorize/a HTTP/1.1\r\nHost: a\r\n\r\n"
	requestWithBody    = "POST /authorize/a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
)

// bootstrapOf serves machines, with a limit of connections for each address.
func bootstrapOf(t *testing.T, perAddress int, machines http.Handler) *testListeners {
	t.Helper()
	s := newTestListeners(t, onlyMachines)
	s.listeners.bootstrap.listener.limits.perAddress = perAddress
	return s.serve(parts{machines: machines})
}

// A request without its body does not keep a machine out.
func TestSlowBodiesDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	s := bootstrapOf(t, 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "token")
	}))
	l := s.listeners.bootstrap.listener
	for range 2 {
		send(t, s.dial(s.listeners.bootstrap, nil, "http/1.1"), requestWithBody)
	}
	eventually(t, "the server waits for the bodies", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.unused.Load() == 0 && !l.conns[0].active && !l.conns[1].active
	})
	machine := s.dial(s.listeners.bootstrap, nil, "http/1.1")
	send(t, machine, requestWithBody+"body")
	answered(t, machine, "token")
}

// Machines whose requests are being answered keep their connections, however many others connect.
func TestRequestsInFlightAreNotCutOff(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}, 2), make(chan struct{})
	s := bootstrapOf(t, 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		started <- struct{}{}
		<-finish
		_, _ = io.WriteString(w, "token")
	}))
	machines := []net.Conn{
		s.dial(s.listeners.bootstrap, nil, "http/1.1"), s.dial(s.listeners.bootstrap, nil, "http/1.1"),
	}
	for i, request := range []string{requestWithoutBody, requestWithBody + "body"} {
		send(t, machines[i], request)
		<-started
	}
	for range 4 {
		if err := closedByServer(s.connect(s.listeners.bootstrap)); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(s.log.String(), "too many connections") {
		t.Error("nothing is logged")
	}
	close(finish)
	for _, machine := range machines {
		answered(t, machine, "token")
	}
}

// Machines use HTTP/1.1 only.
func TestMachinesHaveNoHTTP2(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { onlyMachines(c) })
	s.serve(parts{machines: says("token")})
	if got, err := read(s.caller(nil).Get(at(s.listeners.bootstrap, "/authorize/a"))); err != nil || got.proto != "HTTP/1.1" {
		t.Errorf("got %+v, %v", got, err)
	}
	config := &tls.Config{RootCAs: pool(s.server), NextProtos: []string{"h2"}}
	if _, err := tls.Dial("tcp", s.listeners.bootstrap.listener.Addr().String(), config); err == nil {
		t.Error("HTTP/2 was agreed on")
	}
}
