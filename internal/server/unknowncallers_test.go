package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// allPorts enables all endpoints.
func allPorts(c *v1alpha1.ServerConfiguration) {
	c.Metrics.Address = "127.0.0.1:0"
	machinesWithTheSameCertificate(c)
}

// A machine may send the largest body with each request that its connection may have.
func TestMachinesSendTheLargestBodies(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, size := range []int64{64 << 10, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes", protocol, size), func(t *testing.T) {
				t.Parallel()
				s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
					onlyMachines(c)
					c.Bootstrap.MaxBodyBytes = size
				})
				s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || int64(len(body)) != size {
						t.Errorf("read %d bytes, %v", len(body), err)
					}
					_, _ = io.WriteString(w, "token")
				})})
				client := s.caller(nil)
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				limit := int(guardOf(s.listeners.bootstrap).limits.requests)
				for n := range limit + 1 {
					var reused bool
					trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
					request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost,
						at(s.listeners.bootstrap, "/authorize/a"), strings.NewReader(strings.Repeat("x", int(size))))
					if err != nil {
						t.Fatal(err)
					}
					got, err := read(client.Do(request))
					if err != nil || got.body != "token" || got.proto != protocol {
						t.Fatalf("request %d: got %+v, %v", n+1, got, err)
					}
					if want := n%limit != 0; reused != want {
						t.Errorf("request %d: on an existing connection: %v, want %v", n+1, reused, want)
					}
				}
			})
		}
	}
}

// The connection of a caller without a certificate ends, for any data that the caller sends.
func TestEndlessDataIsCutOff(t *testing.T) {
	t.Parallel()
	const (
		enough = 32 << 20 // more than any limit and all buffers
		post   = "POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		get    = "GET /livez HTTP/1.1\r\nHost: a\r\n"
	)
	begin2 := http2Preface + http2Settings
	for _, tc := range []struct {
		rule, protocol, first, again string
	}{
		{"header fields", "http/1.1", get, "a: b\r\n"},
		{"one header field", "http/1.1", get + "a: ", "x"},
		{"requests", "http/1.1", "", get + "a: " + strings.Repeat("x", 4<<10) + "\r\n\r\n"},
		{"a body after the answer", "http/1.1", post, "400\r\n" + strings.Repeat("x", 1<<10) + "\r\n"},
		{"pings", "h2", begin2, frame(0x6, 0, 8)},
		{"settings", "h2", begin2, frame(0x4, 0, 0)},
		{"unknown frames", "h2", begin2, frame(0xff, 0, 1<<10)},
		{"parts of header fields", "h2", begin2 + frame(frameHeaders, 0, 0), frame(frameContinuation, 0, 0)},
		{"a body after the answer", "h2", begin2 + request2, frame(0, 0, 1<<10)},
	} {
		for _, port := range []string{"webhooks", "bootstrap", "metrics"} {
			if port == "metrics" && tc.protocol == "h2" {
				continue // it supports only HTTP/1.1
			}
			t.Run(port+" "+tc.protocol+" "+tc.rule, func(t *testing.T) {
				t.Parallel()
				s := newTestListeners(t, allPorts)
				s.serve(parts{machines: says("token"), metrics: says("numbers")})
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
	conn, err := net.Dial("tcp", s.listeners.metrics.address().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}
