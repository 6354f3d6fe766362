package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Limits of connections. An API server keeps its connections open and calls at
// once; nobody else has a reason to be slow.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 5 * time.Minute
	maxHeaderBytes = 64 << 10
	// maxStreams is how many requests one HTTP/2 connection carries at once. API
	// servers put all their requests on one.
	maxStreams = 1000
)

// parts are what a shell serves.
type parts struct {
	// webhooks answer callers, by path. Observe, if set, sees all requests to
	// them, with the path, also of those who may not call.
	webhooks map[string]http.Handler
	observe  func(path string, next http.Handler) http.Handler
	// ready are the conditions besides the shell's own.
	ready []check
	// metrics is nil for none.
	metrics http.Handler
}

// shell is the listeners with what is the same whatever they answer:
// certificates, callers, health and shutdown.
type shell struct {
	config       *v1alpha1.ServerConfiguration
	logger       logr.Logger
	certificates *certificates
	// reload is how often the certificates' files are looked at.
	reload time.Duration
	// sleep is what waits for the delay of a shutdown.
	sleep func(time.Duration)

	webhook, metrics *endpoint
	stopping         atomic.Bool
}

// endpoint is one listener and what it serves.
type endpoint struct {
	listener net.Listener
	server   *http.Server
}

// newShell begins to listen: connections wait until serve is called.
func newShell(config *v1alpha1.ServerConfiguration, logger logr.Logger, observer certificateObserver) (*shell, error) {
	s := &shell{config: config, logger: logger, reload: reloadInterval, sleep: time.Sleep}
	var err error
	if s.certificates, err = loadCertificates(&config.Webhook, logger, observer); err != nil {
		return nil, err
	}
	if s.webhook, err = s.listen("webhook.address", config.Webhook.Address); err != nil {
		return nil, err
	}
	if config.Metrics.Address == "" {
		return s, nil
	}
	if s.metrics, err = s.listen("metrics.address", config.Metrics.Address); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *shell) listen(field, address string) (*endpoint, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address, or stop what uses it", field, err)
	}
	return &endpoint{listener: listener, server: &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       rememberConnection,
		ErrorLog:          connectionLog(s.logger),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}}, nil
}

// close gives the addresses free. It is for a shell that has not served.
func (s *shell) close() {
	for _, e := range s.endpoints() {
		e.listener.Close()
	}
}

func (s *shell) endpoints() []*endpoint {
	if s.metrics == nil {
		return []*endpoint{s.webhook}
	}
	return []*endpoint{s.webhook, s.metrics}
}

// addresses are those that are listened on; that of metrics is nil for none.
func (s *shell) addresses() (webhook, metrics net.Addr) {
	if s.metrics != nil {
		metrics = s.metrics.listener.Addr()
	}
	return s.webhook.listener.Addr(), metrics
}

// serve answers until the context ends, and then until the requests under way
// are answered. An error means that it stopped on its own.
func (s *shell) serve(ctx context.Context, p parts) error {
	s.webhook.server.Handler = s.webhookHandler(p)
	s.webhook.server.TLSConfig = s.certificates.tlsConfig()
	failed := make(chan error, 2)
	var running sync.WaitGroup
	defer running.Wait()
	// The files are followed until the last request is answered.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running.Go(func() { s.certificates.follow(following, s.reload) })
	running.Go(func() { failed <- s.webhook.server.ServeTLS(s.webhook.listener, "", "") })
	s.logger.Info("serving webhooks", "address", s.webhook.listener.Addr().String())
	if s.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("/metrics", p.metrics)
		s.metrics.server.Handler = mux
		running.Go(func() { failed <- s.metrics.server.Serve(s.metrics.listener) })
		s.logger.Info("serving metrics", "address", s.metrics.listener.Addr().String())
	}
	select {
	case <-ctx.Done():
		s.drain()
		return nil
	case err := <-failed:
		for _, e := range s.endpoints() {
			e.server.Close()
		}
		return fmt.Errorf("serve: %w", err)
	}
}

func (s *shell) webhookHandler(p parts) http.Handler {
	mux := http.NewServeMux()
	allowed := &callers{certificates: s.certificates, names: s.config.Webhook.AllowedClientNames}
	for path, handler := range p.webhooks {
		handler = allowed.only(handler)
		if p.observe != nil {
			handler = p.observe(path, handler)
		}
		mux.Handle(path, handler)
	}
	mux.Handle("/livez", health("livez", check{"ping", func() (string, error) { return "", nil }}))
	mux.Handle("/readyz", health("readyz", slices.Concat(p.ready, []check{{"certificates", s.certificates.state}, {"shutdown", s.running}})...))
	return s.moving(mux)
}

// moving asks clients to use another connection once the server is stopping, so
// that none sends a request on one that is about to be closed. In HTTP/2, which
// has no such header, it makes the server say the same with a frame.
func (s *shell) moving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

var errStopping = errors.New("the server is shutting down")

func (s *shell) running() (string, error) {
	if s.stopping.Load() {
		return "", errStopping
	}
	return "", nil
}

// drain is not ready from the beginning, serves for the delay, and then answers
// what has begun.
func (s *shell) drain() {
	s.stopping.Store(true)
	delay, timeout := s.config.Shutdown.Delay.Duration, s.config.Shutdown.Timeout.Duration
	s.logger.Info("shutting down", "delay", delay.String(), "timeout", timeout.String())
	s.sleep(delay)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, e := range s.endpoints() {
		if err := e.server.Shutdown(ctx); err != nil {
			s.logger.Error(err, "requests that were under way are cut off: give them more time with shutdown.timeout",
				"address", e.listener.Addr().String())
			e.server.Close()
		}
	}
	s.logger.Info("shut down")
}
