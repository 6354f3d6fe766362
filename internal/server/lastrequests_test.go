package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Requests in flight are answered even after the last answer that the connection may have.
func TestARefusalDoesNotCutOffOtherRequests(t *testing.T) {
	t.Parallel()
	started, refused := make(chan struct{}), make(chan struct{})
	s := newTestListeners(t, onlyMachines)
	s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize/refused" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		close(started)
		<-refused
		select {
		case <-r.Context().Done(): // the connection is closed
		case <-time.After(2 * closingTime):
		}
		_, _ = io.WriteString(w, "token")
	})})
	client := s.caller(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err := read(client.Get(at(s.listeners.bootstrap, "/authorize/a")))
		if err != nil || got.body != "token" || got.proto != "HTTP/2.0" {
			t.Errorf("got %+v, %v", got, err)
		}
	}()
	<-started
	got, err := read(client.Get(at(s.listeners.bootstrap, "/authorize/refused")))
	if err != nil || got.status != http.StatusForbidden {
		t.Errorf("got %+v, %v", got, err)
	}
	close(refused)
	<-done
}

// A thousand requests of one caller are all answered, on as many connections as necessary: if the
// server does not answer a request on one connection, it tells the caller to send it on another.
func TestAThousandRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, atOnce := range []int{1, 8, 32} {
			t.Run(fmt.Sprintf("%s, %d at once", protocol, atOnce), func(t *testing.T) {
				t.Parallel()
				var served atomic.Int32
				s := newTestListeners(t, onlyMachines)
				s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					served.Add(1)
					_, _ = io.Copy(w, r.Body)
				})})
				client := s.caller(nil)
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				const requests = 1000
				var next atomic.Int32
				var running sync.WaitGroup
				for range atOnce {
					running.Go(func() {
						for n := next.Add(1); n <= requests; n = next.Add(1) {
							body := fmt.Sprint("evidence ", n)
							url := at(s.listeners.bootstrap, "/authorize/a")
							got, err := read(client.Post(url, "", strings.NewReader(body)))
							if err != nil || got.status != 200 || got.body != body || got.proto != protocol {
								t.Errorf("request %d: got %+v, %v", n, got, err)
							}
						}
					})
				}
				running.Wait()
				if served.Load() != requests {
					t.Errorf("%d requests were served, want %d: each once", served.Load(), requests)
				}
				g := guardOf(s.listeners.bootstrap)
				g.mu.Lock()
				defer g.mu.Unlock()
				if least := requests / uint64(g.limits.requests); g.accepted < least {
					t.Errorf("%d connections, want at least %d", g.accepted, least)
				}
			})
		}
	}
}

// A thousand requests are sent at once on one connection. The server answers the maximum number of
// requests, and the answers say that the others must be sent on another connection.
func TestAThousandRequestsOnOneConnection(t *testing.T) {
	t.Parallel()
	const sent = 1010
	for port, path := range map[string]string{"webhooks": "/livez", "bootstrap": "/authorize/a", "metrics": "/metrics"} {
		t.Run("HTTP/1.1 "+port, func(t *testing.T) {
			t.Parallel()
			s := newTestListeners(t, allPorts)
			s.serve(parts{machines: says("token"), metrics: says("numbers")})
			conn := s.dialPort(port, "http/1.1")
			request := "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"
			go func() { _, _ = io.WriteString(conn, strings.Repeat(request, sent)) }()
			answers, last := 0, false
			for in := bufio.NewReader(conn); ; answers++ {
				answer, err := http.ReadResponse(in, nil)
				if err != nil {
					if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
						t.Errorf("after %d answers: %v", answers, err)
					}
					break
				}
				if last {
					t.Errorf("answer %d comes after the last one", answers+1)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
					t.Errorf("answer %d: status %d, %v", answers+1, answer.StatusCode, err)
				}
				last = answer.Close
			}
			if want := int(s.guard(port).limits.requests); answers != want || !last {
				t.Errorf("%d requests were answered, want %d; the last answer says so: %v", answers, want, last)
			}
		})
	}
	for _, port := range []string{"webhooks", "bootstrap"} {
		t.Run("HTTP/2 "+port, func(t *testing.T) {
			t.Parallel()
			s := newTestListeners(t, allPorts)
			s.serve(parts{machines: says("token"), metrics: says("numbers")})
			conn := s.dialPort(port, "h2")
			go func() { _, _ = conn.Write(manyRequests(false)) }()
			answered, last := map[uint32]bool{}, uint32(0)
			for framer := http2.NewFramer(nil, conn); ; {
				frame, err := framer.ReadFrame()
				if err != nil {
					if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					break
				}
				switch frame := frame.(type) {
				case *http2.GoAwayFrame:
					if last = frame.LastStreamID; frame.ErrCode != http2.ErrCodeNo {
						t.Errorf("GOAWAY with %v", frame.ErrCode)
					}
				case *http2.DataFrame:
					if frame.StreamEnded() {
						answered[frame.StreamID] = true
					}
				case *http2.RSTStreamFrame:
					t.Errorf("stream %d was reset with %v", frame.StreamID, frame.ErrCode)
				}
			}
			limit := uint32(s.guard(port).limits.requests)
			if want := 2*limit - 1; last != want {
				t.Errorf("GOAWAY names stream %d as the last one, want %d", last, want)
			}
			for stream := uint32(1); stream < 2*limit; stream += 2 {
				if !answered[stream] {
					t.Errorf("stream %d was not answered", stream)
				}
			}
			if len(answered) != int(limit) {
				t.Errorf("%d requests were answered, want %d", len(answered), limit)
			}
		})
	}
}

// guard returns the guard of a port.
func (s *testListeners) guard(port string) *guard {
	return guardOf(map[string]*endpoint{
		"webhooks": s.listeners.webhook, "bootstrap": s.listeners.bootstrap, "metrics": s.listeners.metrics,
	}[port])
}

// During a drain, every accepted request of a machine is answered. Other requests end with an error,
// after which machines retry. No request hangs.
func TestMachinesThatJoinDuringADrain(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			const machines, slow = 12, 4
			s := newTestListeners(t, onlyMachines)
			var joined [machines]atomic.Int32
			allAnswered := func() {
				for i := range joined[slow:] {
					from := joined[slow+i].Load()
					eventually(t, "a machine joins twice", func() bool { return joined[slow+i].Load() > from+1 })
				}
			}
			s.sleep = func(time.Duration) { allAnswered() }
			var accepted sync.Map
			var started atomic.Int32
			closed := make(chan struct{})
			s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return // the server has not received the request
				}
				accepted.Store(r.URL.Path, true)
				if strings.HasPrefix(r.URL.Path, "/authorize/slow") {
					started.Add(1)
					<-closed
				}
				_, _ = io.WriteString(w, r.URL.Path)
			})})
			var running sync.WaitGroup
			for i := range machines {
				client := s.caller(nil)
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				name := "fast"
				if i < slow {
					name = "slow"
				}
				running.Go(func() {
					for n := 0; ; n++ {
						for _, path := range []string{"challenge", "authorize"} {
							path = fmt.Sprintf("/%s/%s-%d-%d", path, name, i, n)
							got, err := read(client.Post(at(s.listeners.bootstrap, path), "", strings.NewReader("evidence")))
							if err == nil && (got.status != 200 || got.body != path || got.proto != protocol) {
								t.Errorf("%s: got %+v", path, got)
							}
							if _, lost := accepted.Load(path); err != nil && lost {
								t.Errorf("%s was accepted, and not answered: %v", path, err)
							}
							if err != nil {
								if !s.stopping.Load() {
									t.Errorf("%s before the drain: %v", path, err)
								}
								if cannotConnect(err) || !s.stopping.Load() {
									return
								}
							}
						}
						joined[i].Add(1)
					}
				})
			}
			eventually(t, "slow requests are in flight", func() bool { return started.Load() == slow })
			allAnswered()
			s.stop()
			eventually(t, "the listener is closed", func() bool {
				conn, err := net.Dial("tcp", s.listeners.bootstrap.address().String())
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
			close(closed)
			running.Wait()
			if err := s.ended(); err != nil {
				t.Error(err)
			}
		})
	}
}
