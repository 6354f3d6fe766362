package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Requests that are being answered when the connection has got its last answer are
// answered too.
func TestARefusalDoesNotCutOffOtherRequests(t *testing.T) {
	t.Parallel()
	begun, refused := make(chan struct{}), make(chan struct{})
	s := newTestShell(t, onlyMachines)
	s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize/refused" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		close(begun)
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
		if got, err := read(client.Get(at(s.shell.bootstrap, "/authorize/a"))); err != nil || got.body != "token" || got.proto != "HTTP/2.0" {
			t.Errorf("got %+v, %v", got, err)
		}
	}()
	<-begun
	if got, err := read(client.Get(at(s.shell.bootstrap, "/authorize/refused"))); err != nil || got.status != http.StatusForbidden {
		t.Errorf("got %+v, %v", got, err)
	}
	close(refused)
	<-done
}

// The last request that a connection may have may take longer than the connection lasts
// after its answer.
func TestTheLastOfAThousandAnswersMayTakeTime(t *testing.T) {
	t.Parallel()
	s := newTestShell(t, allPorts)
	limit := guardOf(s.shell.metrics).limits.requests
	var served atomic.Int32
	s.serve(parts{machines: refuses, metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) == limit {
			select {
			case <-r.Context().Done(): // the connection is closed
			case <-time.After(2 * closingTime):
			}
		}
		_, _ = io.WriteString(w, "numbers")
	})})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for n := range limit + 1 {
		var reused bool
		got, err := traced(t, client, "http://"+s.shell.metrics.address().String()+"/metrics", &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
		})
		if err != nil || got.body != "numbers" {
			t.Fatalf("request %d: got %+v, %v", n+1, got, err)
		}
		if want := n%limit != 0; reused != want {
			t.Fatalf("request %d: on a connection that was there: %v, want %v", n+1, reused, want)
		}
	}
}

func traced(t *testing.T, client *http.Client, url string, trace *httptrace.ClientTrace) (response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return read(client.Do(request))
}

// A thousand requests of one caller are all answered, on as many connections as it takes:
// what the server does not answer on one, it tells the caller to send on another.
func TestAThousandRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, atOnce := range []int{1, 8, 32} {
			t.Run(fmt.Sprintf("%s, %d at once", protocol, atOnce), func(t *testing.T) {
				t.Parallel()
				var served atomic.Int32
				s := newTestShell(t, onlyMachines)
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
							if got, err := read(client.Post(at(s.shell.bootstrap, "/authorize/a"), "", strings.NewReader(body))); err != nil || got.status != 200 || got.body != body || got.proto != protocol {
								t.Errorf("request %d: got %+v, %v", n, got, err)
							}
						}
					})
				}
				running.Wait()
				if served.Load() != requests {
					t.Errorf("%d requests were served, want %d: each once", served.Load(), requests)
				}
				g := guardOf(s.shell.bootstrap)
				g.mu.Lock()
				defer g.mu.Unlock()
				if least := requests / uint64(g.limits.requests); g.accepted < least {
					t.Errorf("%d connections, want at least %d", g.accepted, least)
				}
			})
		}
	}
}
