package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// A thousand requests of one caller are all answered.
func TestAThousandRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []int{1, 8, 32} {
		t.Run(fmt.Sprintf("%d at once", atOnce), func(t *testing.T) {
			t.Parallel()
			var served atomic.Int32
			s := newTestListeners(t, onlyMachines)
			s.serve(parts{machines: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				_, _ = io.Copy(w, r.Body)
			})})
			client := s.caller(nil)
			const requests = 1000
			var next atomic.Int32
			var running sync.WaitGroup
			for range atOnce {
				running.Go(func() {
					for n := next.Add(1); n <= requests; n = next.Add(1) {
						body := fmt.Sprint("evidence ", n)
						url := at(s.listeners.bootstrap, "/authorize/a")
						got, err := read(client.Post(url, "", strings.NewReader(body)))
						if err != nil || got.status != 200 || got.body != body {
							t.Errorf("request %d: got %+v, %v", n, got, err)
						}
					}
				})
			}
			running.Wait()
			if served.Load() != requests {
				t.Errorf("%d requests were served, want %d: each once", served.Load(), requests)
			}
		})
	}
}

// During a drain, every accepted request of a machine is answered. Other requests end with an error,
// after which machines retry. No request hangs.
func TestMachinesThatJoinDuringADrain(t *testing.T) {
	t.Parallel()
	const machines, slow = 12, 4
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		onlyMachines(c)
		c.Bootstrap.RequestTimeout.Duration = 10 * time.Minute // slow requests wait for many others under load
	})
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
		name := "fast"
		if i < slow {
			name = "slow"
		}
		running.Go(func() {
			for n := 0; ; n++ {
				for _, path := range []string{"challenge", "authorize"} {
					path = fmt.Sprintf("/%s/%s-%d-%d", path, name, i, n)
					got, err := read(client.Post(at(s.listeners.bootstrap, path), "", strings.NewReader("evidence")))
					if err == nil && (got.status != 200 || got.body != path) {
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
		conn, err := net.Dial("tcp", s.listeners.bootstrap.listener.Addr().String())
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
}
