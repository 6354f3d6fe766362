package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// allPorts enables all endpoints.
func allPorts(c *v1alpha1.ServerConfiguration) {
	c.Metrics.Address = "127.0.0.1:0"
	machinesWithTheSameCertificate(c)
}

// HTTP/2 frames, RFC 9113 section 6.
const (
	http2Preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	http2Settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

	frameData, frameHeaders, frameSettings, framePing, frameContinuation = 0x0, 0x1, 0x4, 0x6, 0x9
)

// frame returns an HTTP/2 frame of the first stream, or of the connection, with a payload of the size.
func frame(kind, flags byte, size int) string {
	stream := byte(1)
	if kind == frameSettings || kind == framePing {
		stream = 0
	}
	return string([]byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, 0, 0, 0, stream}) + strings.Repeat("x", size)
}

// request2 is a request with a body: POST, https, /authorize, a. See rapidReset for its fields.
const request2 = "\x00\x00\x11\x01\x04\x00\x00\x00\x01\x83\x87\x04\x0a/authorize\x01\x01a"

// rapidReset sends a request with the number, from 0, and resets it.
func rapidReset(w io.Writer, number int) error {
	text := ""
	if number == 0 {
		text = http2Preface + http2Settings
	}
	// The indexes of the fields in HPACK's static table: GET, https, :path and :authority.
	// RFC 7541, appendix A.
	const fields = "\x82\x87\x04\x0a/authorize\x01\x01a"
	id := 2*number + 1
	stream := string([]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
	text += fmt.Sprintf("\x00\x00%c\x01\x05%s%s", len(fields), stream, fields) // HEADERS that end the stream
	text += fmt.Sprintf("\x00\x00\x04\x03\x00%s\x00\x00\x00\x08", stream)      // RST_STREAM: CANCEL
	_, err := io.WriteString(w, text)
	return err
}

// endlessData is data that callers without a certificate send in HTTP/1.1 and, to the webhooks, in HTTP/2:
// a beginning, and a part that is repeated without an end.
var endlessData = []struct{ rule, protocol, first, again string }{
	{"header fields", "http/1.1", "GET /livez HTTP/1.1\r\nHost: a\r\n", "a: b\r\n"},
	{"one header field", "http/1.1", "GET /livez HTTP/1.1\r\nHost: a\r\na: ", "x"},
	{
		"a body after the answer", "http/1.1",
		"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" + strings.Repeat("x", 1<<10) + "\r\n",
	},
	{
		"a body of a gigabyte", "http/1.1",
		"POST /authorize HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n", strings.Repeat("x", 1<<10),
	},
	{"pings", "h2", http2Preface + http2Settings, frame(framePing, 0, 8)},
	{"settings", "h2", http2Preface + http2Settings, frame(frameSettings, 0, 0)},
	{"unknown frames", "h2", http2Preface + http2Settings, frame(0xff, 0, 1<<10)},
	{"parts of header fields", "h2", http2Preface + http2Settings + frame(frameHeaders, 0, 0), frame(frameContinuation, 0, 0)},
	{"a body after the answer", "h2", http2Preface + http2Settings + request2, frame(frameData, 0, 1<<10)},
	{"thousands of requests", "h2", string(manyRequests(false)), frame(framePing, 0, 8)},
	{"thousands of resets", "h2", string(manyRequests(true)), frame(framePing, 0, 8)},
}

// The connection of a caller without a certificate ends, for any data that the caller sends. No request
// of such a caller reaches a webhook.
func TestEndlessDataIsCutOff(t *testing.T) {
	t.Parallel()
	const enough = 32 << 20 // more than any limit and all buffers
	for _, tc := range endlessData {
		for _, port := range []string{"webhooks", "bootstrap", "metrics"} {
			if port != "webhooks" && tc.protocol == "h2" {
				continue // they support only HTTP/1.1
			}
			t.Run(port+" "+tc.protocol+" "+tc.rule, func(t *testing.T) {
				t.Parallel()
				s := newTestListeners(t, allPorts)
				var served atomic.Int32
				s.serve(parts{machines: says("token"), metrics: says("numbers"), observe: counting(&served)})
				conn := s.dialPort(port, tc.protocol)
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				many := strings.Repeat(tc.again, 1+(64<<10)/len(tc.again))
				_, err := io.WriteString(conn, tc.first)
				sent := 0
				for ; err == nil && sent < enough; sent += len(many) {
					_, err = io.WriteString(conn, many)
				}
				if err == nil {
					t.Errorf("the server accepted %d bytes", sent)
				}
				if served.Load() != 0 {
					t.Errorf("%d requests reached a webhook", served.Load())
				}
			})
		}
	}
}

// dialPort opens a connection without a certificate.
func (s *testListeners) dialPort(port, protocol string) net.Conn {
	s.t.Helper()
	switch port {
	case "webhooks":
		return s.dial(s.listeners.webhook, nil, protocol)
	case "bootstrap":
		return s.dial(s.listeners.bootstrap, nil, protocol)
	}
	return s.connect(s.listeners.metrics)
}

// Callers without a certificate attack both ports with more connections than these may have, from the
// address of API servers and machines and from another one. Meanwhile API servers and machines are answered
// on new connections, with retries as they do, and what counts stays within the limits.
func TestOthersAreAnsweredDuringAttacks(t *testing.T) {
	t.Parallel()
	const perAddress, total, attackers, retries = 32, 48, 160, 20
	tlsOf := func(ctx context.Context, conn net.Conn, protocol string) *tls.Conn {
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		_ = secure.HandshakeContext(ctx)
		return secure
	}
	await := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for rule, attack := range map[string]func(context.Context, net.Conn){
		"idle connections": func(_ context.Context, conn net.Conn) { await(conn) },
		"idle after the handshake": func(ctx context.Context, conn net.Conn) {
			await(tlsOf(ctx, conn, "http/1.1"))
		},
		"interrupted handshakes": func(_ context.Context, conn net.Conn) {
			_, _ = conn.Write(firstMessage(&tls.Config{ServerName: "127.0.0.1"}))
			await(conn)
		},
		"handshakes": func(ctx context.Context, conn net.Conn) { tlsOf(ctx, conn, "http/1.1") },
		"slow headers": func(ctx context.Context, conn net.Conn) {
			secure := tlsOf(ctx, conn, "http/1.1")
			_, _ = io.WriteString(secure, "GET / HTTP/1.1\r\n")
			await(secure)
		},
		"slow bodies": func(ctx context.Context, conn net.Conn) {
			secure := tlsOf(ctx, conn, "http/1.1")
			_, _ = io.WriteString(secure, requestWithBody)
			await(secure)
		},
		"resets": func(ctx context.Context, conn net.Conn) {
			secure := tlsOf(ctx, conn, "h2")
			for n := 0; rapidReset(secure, n) == nil; n++ {
			}
		},
		"continuations": func(ctx context.Context, conn net.Conn) {
			secure := tlsOf(ctx, conn, "h2")
			_, err := io.WriteString(secure, http2Preface+http2Settings+frame(frameHeaders, 0, 0))
			for err == nil {
				_, err = io.WriteString(secure, frame(frameContinuation, 0, 0))
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			if testing.Short() && slices.Contains([]string{"handshakes", "resets", "continuations"}, rule) {
				t.Skip("the race detector makes the attackers of a flood slow, and not only the server")
			}
			s := newTestListeners(t, machinesWithTheSameCertificate)
			endpoints := s.endpoints()
			for _, e := range endpoints {
				e.listener.limits.perAddress, e.listener.limits.total = perAddress, total
			}
			s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "token")
			})})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer stop()
			var attacks atomic.Int64
			for i := range attackers {
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%2))}}
				address := endpoints[i/2%2].listener.Addr().String()
				running.Go(func() {
					for ctx.Err() == nil {
						conn, err := from.DialContext(ctx, "tcp", address)
						if err == nil {
							end := context.AfterFunc(ctx, func() { conn.Close() })
							attacks.Add(1)
							attack(ctx, conn)
							end()
							conn.Close()
						}
						select {
						case <-time.After(100 * time.Millisecond):
						case <-ctx.Done():
						}
					}
				})
			}
			eventually(t, "attacks have begun", func() bool { return attacks.Load() >= attackers })
			ask := func(want string, ask func() (response, error)) {
				var got response
				var err error
				for range retries {
					if got, err = ask(); err == nil && got.body == want {
						return
					}
				}
				t.Errorf("got %+v, %v", got, err)
			}
			for range 10 {
				ask("question", func() (response, error) {
					return s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", "question")
				})
				ask("token", func() (response, error) {
					return read(s.caller(nil).Post(at(s.listeners.bootstrap, "/authorize/a"), "", strings.NewReader("evidence")))
				})
				for _, e := range endpoints {
					if n := e.listener.held(); n > total {
						t.Errorf("%s: %d connections count, want at most %d", e.name, n, total)
					}
				}
			}
		})
	}
}

// A machine may send the largest body.
func TestMachinesSendTheLargestBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		onlyMachines(c)
		c.Bootstrap.MaxBodyBytes = size
	})
	server := s.listeners.bootstrap.server
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = time.Minute, time.Minute, time.Minute // a loaded machine is slow
	s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != size {
			t.Errorf("read %d bytes, %v", len(body), err)
		}
		_, _ = io.WriteString(w, "token")
	})})
	client := s.caller(nil)
	for range 10 {
		got, err := read(client.Post(at(s.listeners.bootstrap, "/authorize/a"), "", strings.NewReader(strings.Repeat("x", size))))
		if err != nil || got.body != "token" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
}
