package fakeaws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Service is one HTTP server of the cloud.
type Service struct {
	// URL is its address, without a slash at the end: "http://127.0.0.1:12345".
	URL string

	server    *http.Server
	handle    http.HandlerFunc
	throttled func(http.ResponseWriter, *http.Request, FaultKind)
	cancel    context.CancelFunc

	mu       sync.Mutex
	fault    Fault
	healed   chan struct{}
	requests int
}

// FaultKind is a kind of fault.
type FaultKind int

// The faults of a service.
const (
	// Healthy is no fault.
	Healthy FaultKind = iota
	// Throttled answers with a throttling error.
	Throttled
	// Broken answers with an internal error.
	Broken
	// Forbidden answers that the caller has no permission.
	Forbidden
	// Down closes the connection without an answer.
	Down
	// Slow answers after a delay.
	Slow
	// Hanging does not answer until Heal is called or the caller cancels.
	Hanging
	// Empty answers with status 200 and an empty body.
	Empty
)

// Fault is a fault of a service.
type Fault struct {
	Kind FaultKind
	// Times is the number of requests with the fault; 0 means all, until Heal is called.
	Times int
	// Delay is the delay of a slow answer.
	Delay time.Duration
}

// Patience bounds what tests wait for while a service hangs. A slow machine needs longer to start many requests than the product's
// time limits allow.
const Patience = 5 * time.Minute

// Until waits for a condition.
func Until(t testing.TB, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}

// Break makes a service fail from the next request. Hanging requests continue and
// succeed.
func (s *Service) Break(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
	close(s.healed)
	s.healed = make(chan struct{})
}

// Heal ends a fault.
func (s *Service) Heal() { s.Break(Fault{}) }

// Requests returns the number of received requests.
func (s *Service) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// serve starts a service. The second function writes the answers for faults that the
// service's protocol has an answer for.
func serve(handle http.HandlerFunc, throttled func(http.ResponseWriter, *http.Request, FaultKind)) (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as a fake of AWS: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		URL: "http://" + listener.Addr().String(), handle: handle, throttled: throttled,
		cancel: cancel, healed: make(chan struct{}),
	}
	s.server = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return s, nil
}

func (s *Service) close() {
	s.cancel()
	_ = s.server.Close()
}

// ServeHTTP answers a request, or fails with the current fault.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http detects a canceled request only after the body has been read.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault, healed := s.next()
	switch fault.Kind {
	case Healthy:
		s.handle(w, r)
	case Throttled, Broken, Forbidden:
		s.throttled(w, r, fault.Kind)
	case Down:
		panic(http.ErrAbortHandler)
	case Slow:
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		afterwards(s, w, r, timer.C)
	case Hanging:
		afterwards(s, w, r, healed)
	case Empty:
		w.WriteHeader(http.StatusOK)
	}
}

// next returns the fault for a new request.
func (s *Service) next() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	fault := s.fault
	if s.fault.Times > 0 {
		s.fault.Times--
		if s.fault.Times == 0 {
			s.fault = Fault{}
		}
	}
	return fault, s.healed
}

// afterwards answers when the channel is ready. It does nothing if the caller has
// canceled by then.
func afterwards[T any](s *Service, w http.ResponseWriter, r *http.Request, ready <-chan T) {
	select {
	case <-ready:
		s.handle(w, r)
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}
