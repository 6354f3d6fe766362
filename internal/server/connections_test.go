package server

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// guardOf returns the guard of an endpoint. Its limits may be changed before the endpoint serves.
func guardOf(e *endpoint) *guard { return e.listener.(guardedListener).guard }

// held returns the number of connections that a guard limits.
func (g *guard) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// dial opens a connection and completes the handshake.
func (s *testListeners) dial(e *endpoint, certificate *tls.Certificate, protocol string) *tls.Conn {
	s.t.Helper()
	config := &tls.Config{RootCAs: pool(s.server), ServerName: "127.0.0.1", NextProtos: []string{protocol}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	conn, err := tls.Dial("tcp", e.address().String(), config)
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

func TestIdleConnectionsWithoutACertificateEnd(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"h2", "http/1.1"} {
		for _, name := range []string{"webhooks", "bootstrap"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
					machinesWithTheSameCertificate(c)
				})
				e := s.listeners.webhook
				if name == "bootstrap" {
					e = s.listeners.bootstrap
				}
				guardOf(e).limits.first, guardOf(e).limits.idle = time.Second, 10*time.Millisecond
				s.serve(parts{machines: says("token")})
				conn := s.dial(e, nil, protocol)
				if protocol == "h2" {
					if _, err := io.WriteString(conn, http2Preface+http2Settings); err != nil {
						t.Fatal(err)
					}
				}
				if err := closedByServer(conn); err != nil {
					t.Error(err)
				}
				eventually(t, "the connection is not counted", func() bool { return guardOf(e).held() == 0 })
			})
		}
	}
}

// An authenticated connection is not limited from the end of the handshake on.
func TestConnectionsWithACertificateAreNotLimited(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	guardOf(s.listeners.webhook).limits.perAddress = 2
	s.serve(parts{})
	known := s.caller(s.callers.client("kube-apiserver"))
	for range 5 {
		if got, err := s.post(known, "/authorize", "question"); err != nil || got.status != 200 || got.proto != "HTTP/2.0" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	eventually(t, "the connection is not counted", func() bool { return guardOf(s.listeners.webhook).held() == 0 })
	// Other connections do not affect it.
	for range 4 {
		s.dial(s.listeners.webhook, nil, "h2")
	}
	if n := guardOf(s.listeners.webhook).held(); n > 2 {
		t.Errorf("%d connections are held, want at most 2", n)
	}
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	if got, err := s.post(known, "/authorize", large); err != nil || got.body != large {
		t.Errorf("got %d bytes with status %d, %v", len(got.body), got.status, err)
	}
}

func TestARefusalEndsTheConnection(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, path := range []string{"/authorize", "/livez"} {
			t.Run(protocol+path, func(t *testing.T) {
				t.Parallel()
				s := newTestListeners(t, nil)
				s.serve(parts{})
				client := s.caller(nil)
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				want := map[string]int{"/authorize": 401, "/livez": 200}[path]
				ask := s.get
				if path == "/authorize" {
					ask = func(client *http.Client, path string) (response, error) { return s.post(client, path, "question") }
				}
				if got, err := ask(client, path); err != nil || got.status != want || got.proto != protocol {
					t.Fatalf("got %+v, %v, want status %d", got, err, want)
				}
				eventually(t, "the connection ends", func() bool { return guardOf(s.listeners.webhook).held() == 0 })
			})
		}
	}
}

func TestABootstrapRefusalEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, onlyMachines)
	s.serve(parts{machines: refuses})
	if got, err := read(s.caller(nil).Get(at(s.listeners.bootstrap, "/authorize/a"))); err != nil || got.status != 403 {
		t.Fatalf("got %+v, %v", got, err)
	}
	eventually(t, "the connection ends", func() bool { return guardOf(s.listeners.bootstrap).held() == 0 })
}

// Requests are sent and reset at once, without reading. The first reset ends the connection, even if
// many are sent.
func TestResetsEndTheConnection(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	s := newTestListeners(t, nil)
	s.serve(parts{observe: func(_ string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			next.ServeHTTP(w, r)
		})
	}})
	conn := s.dial(s.listeners.webhook, nil, "h2")
	sent := 0
	for ; ; sent++ {
		if err := rapidReset(conn, sent); err != nil {
			break
		}
	}
	if err := closedByServer(conn); err != nil {
		t.Error(err)
	}
	if served.Load() > 1 {
		t.Errorf("%d requests were handled, want at most one", served.Load())
	}
}

const (
	http2Preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	http2Settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

// rapidReset sends a request with the number, from 0, and resets it.
func rapidReset(w io.Writer, number int) error {
	text := ""
	if number == 0 {
		text = http2Preface + http2Settings
	}
	// The indexes of the fields in HPACK's static table: GET, https, :path and :authority.
	// RFC 7541, appendix A.
	fields := "\x82\x87\x04\x0a/authorize\x01\x01a"
	stream := binary.BigEndian.AppendUint32(nil, uint32(2*number+1))
	text += fmt.Sprintf("\x00\x00%c\x01\x05%s%s", len(fields), stream, fields) // HEADERS that end the stream
	text += fmt.Sprintf("\x00\x00\x04\x03\x00%s\x00\x00\x00\x08", stream)      // RST_STREAM: CANCEL
	_, err := io.WriteString(w, text)
	return err
}

// An interrupted handshake does not hold a slot.
func TestInterruptedHandshakesHoldNoSlot(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	g := guardOf(s.listeners.webhook)
	g.handshakes = make(chan struct{}, 1)
	s.serve(parts{})
	for range 3 {
		raw, err := net.Dial("tcp", s.listeners.webhook.address().String())
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		// Only the caller's first message is sent.
		config := &tls.Config{RootCAs: pool(s.server), ServerName: "127.0.0.1"}
		go func() { _ = tls.Client(mute{raw, t.Context().Done()}, config).Handshake() }()
	}
	eventually(t, "all are connected", func() bool { return g.held() == 3 })
	client := s.caller(s.callers.client("kube-apiserver"))
	if got, err := s.post(client, "/authorize", "question"); err != nil || got.status != 200 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// mute is a connection that receives nothing.
type mute struct {
	net.Conn
	ended <-chan struct{}
}

func (m mute) Read([]byte) (int, error) {
	<-m.ended
	return 0, io.EOF
}

// The body of an unauthenticated caller is not read beyond the limit.
func TestLargeBodiesAreNotReadWithoutACertificate(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.serve(parts{})
	conn := s.dial(s.listeners.webhook, nil, "http/1.1")
	_, err := io.WriteString(conn, "POST /authorize HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
	for chunk := bytes.Repeat([]byte("x"), 64<<10); err == nil; {
		_, err = conn.Write(chunk)
	}
	if err := closedByServer(conn); err != nil {
		t.Error(err)
	}
}

// A caller cannot make the server log a line that looks like a panic.
func TestCallersDoNotForgePanics(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.serve(parts{})
	conn := s.dial(s.listeners.webhook, nil, "h2")
	if _, err := io.WriteString(conn, "panic serving everything"); err != nil { // as long as the preface
		t.Fatal(err)
	}
	if err := closedByServer(conn); err != nil {
		t.Error(err)
	}
	eventually(t, "the connection is not counted", func() bool { return guardOf(s.listeners.webhook).held() == 0 })
	if text := s.log.String(); strings.Contains(text, "a request was not answered") {
		t.Errorf("logged %s", text)
	}
}

// A certificate is not secret: a caller is authenticated when the handshake has proved that it has
// the key, and not before.
func TestACertificateAloneDoesNotAuthenticate(t *testing.T) {
	t.Parallel()
	limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: 1}
	g := newGuard(limits, false, logr.Discard())
	conn := g.admit(&madeUp{address: "10.0.0.1:1000"}).(*guardedConn)
	conn.identified(true)
	if g.held() != 1 || conn.known.Load() {
		t.Error("the connection is not limited before the end of the handshake")
	}
	conn.setActive(true)
	if g.held() != 0 || !conn.known.Load() {
		t.Error("the connection is limited after the handshake")
	}
}

// Certificates of the same authorities whose names are not allowed, such as those of nodes, have the
// same limits as no certificate.
func TestConnectionsWithADisallowedNameAreLimited(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	g := guardOf(s.listeners.webhook)
	s.serve(parts{})
	conn := s.dial(s.listeners.webhook, s.callers.client("system:node:a"), "http/1.1")
	if _, err := io.WriteString(conn, "POST /authorize HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	answer, err := io.ReadAll(conn) // until the server closes the connection
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
		t.Errorf("got %q, %v", answer, err)
	}
	eventually(t, "the connection is not counted", func() bool { return g.held() == 0 })
	client := s.caller(s.callers.client("kube-apiserver"))
	if got, err := s.post(client, "/authorize", "question"); err != nil || got.status != 200 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The last answer on a connection may take longer than closingTime.
func TestTheLastAnswerIsNotCutOff(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, onlyMachines)
	guardOf(s.listeners.bootstrap).limits.requests = 1
	s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done(): // the connection is closed
		case <-time.After(2 * closingTime):
		}
		_, _ = io.WriteString(w, "token")
	})})
	if got, err := read(s.caller(nil).Get(at(s.listeners.bootstrap, "/authorize/a"))); err != nil || got.body != "token" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Requests that HTTP/2 refuses do not reach a handler that counts them. They do not extend the time
// of the connection.
func TestRefusedRequestsDoNotKeepAConnection(t *testing.T) {
	t.Parallel()
	limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: 2}
	g := newGuard(limits, false, logr.Discard())
	conn := g.admit(&madeUp{address: "10.0.0.1:1000"}).(*guardedConn)
	// Once at the beginning, and once for each request.
	for n := range 3 {
		conn.setActive(true)
		conn.setActive(false)
		if conn.closing {
			t.Fatalf("the connection ends after %d requests", n)
		}
	}
	conn.setActive(true)
	conn.setActive(false)
	eventually(t, "the connection ends", func() bool { return g.held() == 0 })
}

// A handshake holds a slot after each message of the caller, while the server computes.
func TestAHandshakeHoldsASlotWhileItIsComputed(t *testing.T) {
	t.Parallel()
	limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: 1}
	g := newGuard(limits, false, logr.Discard())
	g.handshakes = make(chan struct{}, 2)
	near, far := net.Pipe()
	defer far.Close()
	conn := g.admit(near).(*guardedConn)
	defer conn.Close()
	go func() { _, _ = io.Copy(far, far) }()
	for range 3 {
		if _, err := conn.Write([]byte("hello")); err != nil || len(g.handshakes) != 0 {
			t.Fatalf("%d slots are held while the server waits for the caller, %v", len(g.handshakes), err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil || len(g.handshakes) != 1 {
			t.Fatalf("%d slots are held after a message, %v", len(g.handshakes), err)
		}
	}
	conn.setActive(true)
	if len(g.handshakes) != 0 {
		t.Error("a slot is held after the handshake")
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
