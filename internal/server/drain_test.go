package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// During a shutdown the server is not ready at once, still serves for the delay, and then only
// completes the requests in flight.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { c.Shutdown.Delay = seconds(7) })
	sleeping, wake := make(chan time.Duration, 1), make(chan struct{})
	s.sleep = func(d time.Duration) {
		sleeping <- d
		<-wake
	}
	started, finish := make(chan struct{}, 2), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-finish
		_, _ = io.WriteString(w, "answer")
	})
	s.serve(parts{webhooks: map[string]http.Handler{"/authorize": handler}})
	client := s.caller(s.callers.client("kube-apiserver"))
	other := s.caller(s.callers.client("kube-apiserver"))
	answers := make(chan error, 2)
	ask := func(client *http.Client) {
		got, err := s.post(client, "/authorize", "")
		if err == nil && (got.status != 200 || got.body != "answer") {
			err = errors.New(got.body)
		}
		answers <- err
	}
	go ask(client)
	<-started

	s.stop()
	if d := <-sleeping; d != 7*time.Second {
		t.Errorf("slept for %v, want the delay", d)
	}
	got, err := s.get(client, "/readyz")
	const stopping = "[-]shutdown failed: the server is shutting down\n"
	if err != nil || got.status != 503 || !strings.Contains(got.body, stopping) {
		t.Errorf("readyz during the delay: got %+v, %v", got, err)
	}
	if got, err := s.get(client, "/livez"); err != nil || got.status != 200 {
		t.Errorf("livez during the delay: got %+v, %v", got, err)
	}
	go ask(other) // on a new connection
	<-started

	close(wake)
	eventually(t, "the listener is closed", func() bool {
		_, err := net.Dial("tcp", s.listeners.webhook.listener.Addr().String())
		return err != nil
	})
	select {
	case err := <-s.done:
		t.Fatalf("serving ended with requests in flight: %v", err)
	default:
	}
	close(finish)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a request in flight: %v", err)
		}
	}
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

// A connection in HTTP/2 counts as idle before its first request. A shutdown does not close it until that has come.
func TestTheFirstRequestOfANewConnectionIsAnswered(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.sleep = func(time.Duration) {}
	e := s.listeners.webhook
	e.firstRequests = time.Hour
	s.serve(parts{})
	conn := s.dial(e, s.callers.client("kube-apiserver"), "h2")
	send(t, conn, http2Preface+http2Settings)
	if _, err := io.ReadFull(conn, make([]byte, len(http2Settings))); err != nil { // the server's settings: the connection is idle
		t.Fatal(err)
	}
	s.stop()
	eventually(t, "the listener is closed", func() bool {
		_, err := net.Dial("tcp", e.listener.Addr().String())
		return err != nil
	})
	send(t, conn, request2+frame(frameData, 1, 5))
	if got, err := io.ReadAll(conn); !strings.Contains(string(got), "xxxxx") { // the body
		t.Errorf("got %q, %v", got, err)
	}
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

// Callers send requests continuously, in HTTP/2 as API servers do. During the delay all requests are
// answered; afterwards accepted requests are answered, and others cannot connect.
func TestNoRequestIsLostInADrain(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	var answered [8]atomic.Int64
	allAnswered := func() {
		t.Helper()
		for i := range answered {
			from := answered[i].Load()
			eventually(t, "a caller is answered twice", func() bool { return answered[i].Load() > from+2 })
		}
	}
	s.sleep = func(time.Duration) { allAnswered() }
	s.serve(parts{})
	var callers sync.WaitGroup
	for i := range answered {
		client := s.caller(s.callers.client("kube-apiserver"))
		callers.Go(func() {
			for {
				var sent atomic.Bool
				got, err := s.trace(client, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
				if err != nil && s.stopping.Load() && (cannotConnect(err) || !sent.Load()) {
					return
				}
				if err != nil || got.body != "question" || got.proto != "HTTP/2.0" {
					t.Errorf("got %+v, %v", got, err)
					return
				}
				answered[i].Add(1)
			}
		})
	}
	allAnswered()
	s.stop()
	callers.Wait()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

func cannotConnect(err error) bool {
	refused := new(net.OpError)
	return errors.As(err, &refused) && refused.Op == "dial"
}

// trace posts a request with a trace.
func (s *testListeners) trace(client *http.Client, trace *httptrace.ClientTrace) (response, error) {
	ctx := httptrace.WithClientTrace(s.t.Context(), trace)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/authorize"), strings.NewReader("question"))
	if err != nil {
		return response{}, err
	}
	return read(client.Do(req))
}

func TestRequestsThatTakeTooLongAreCutOff(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		c.Shutdown.Timeout = metav1.Duration{Duration: time.Millisecond}
	})
	started := make(chan struct{})
	s.serve(parts{webhooks: map[string]http.Handler{"/authorize": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})}})
	failed := make(chan error, 1)
	go func() {
		_, err := s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", "")
		failed <- err
	}()
	<-started
	s.stop()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	if log := s.log.String(); !strings.Contains(log, "requests in flight are cut off") {
		t.Errorf("this is not logged:\n%s", log)
	}
}
