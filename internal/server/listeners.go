package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// parts are the handlers that the listeners serve.
type parts struct {
	// webhooks are the handlers of the webhooks by path. Observe, if set, wraps each of
	// them. It also sees requests of callers that are not allowed.
	webhooks map[string]http.Handler
	observe  func(path string, next http.Handler) http.Handler
	// ready are the readiness checks of the webhooks, besides the checks of the listeners.
	ready []check
	// machines is the handler for machines that join, on all paths except the health
	// endpoints.
	machines http.Handler
	// joinReady are the readiness checks of the bootstrap service and the approver.
	joinReady []check
	// metrics is the handler of /metrics; nil for none.
	metrics http.Handler
}

// listeners are the listeners of the server with what they have in common: certificates,
// authentication of callers, health and shutdown.
type listeners struct {
	config *v1alpha1.ServerConfiguration
	logger logr.Logger
	// reload is the interval at which the certificate files are checked.
	reload time.Duration
	// sleep waits for the shutdown delay.
	sleep func(time.Duration)

	// Each is nil if the configuration has no address for it.
	webhook, bootstrap, metrics *endpoint
	stopping                    atomic.Bool
}

// newListeners starts to listen. Connections wait until serve is called.
func newListeners(config *v1alpha1.ServerConfiguration, logger logr.Logger, observer certificateObserver) (*listeners, error) {
	s := &listeners{config: config, logger: logger, reload: reloadInterval, sleep: time.Sleep}
	w, b := &config.Webhook, &config.Bootstrap
	open := func(into **endpoint, o opening) (err error) {
		o.logger, o.observer = logger, observer
		*into, err = o.open()
		return err
	}
	err := open(&s.webhook, opening{
		name: "webhooks", address: w.Address, limits: apiServerLimits(),
		files: &certificateFiles{
			section: "webhook", certificate: w.CertificateFile, key: w.KeyFile, authorities: w.ClientCAFile, inHandshake: true,
			anyName: w.ClientAuthentication == v1alpha1.AnyClientCertificate, names: w.AllowedClientNames,
		},
	})
	if err == nil {
		err = open(&s.bootstrap, opening{
			name: "bootstrap", address: b.Address, limits: machineLimits(b.RequestTimeout.Duration),
			files: &certificateFiles{
				section: "bootstrap", certificate: b.CertificateFile, key: b.KeyFile, authorities: b.ClientCAFile,
				wait: b.CertificateWait.Duration,
			},
		})
	}
	if err == nil {
		err = open(&s.metrics, opening{name: "metrics", address: config.Metrics.Address, limits: monitoringLimits()})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close closes the listeners. Call it only if serve was not called.
func (s *listeners) close() {
	for _, e := range s.endpoints() {
		e.listener.Close()
	}
}

func (s *listeners) endpoints() []*endpoint {
	return slices.DeleteFunc([]*endpoint{s.webhook, s.bootstrap, s.metrics}, func(e *endpoint) bool { return e == nil })
}

// serve serves until the context ends and all requests in flight are answered. It returns
// an error if a listener fails.
func (s *listeners) serve(ctx context.Context, p parts) error {
	s.handle(p)
	endpoints := s.endpoints()
	failed := make(chan error, 2*len(endpoints))
	var running sync.WaitGroup
	defer running.Wait()
	// The files are followed until the last request is answered.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for _, e := range endpoints {
		if e.certificates != nil {
			running.Go(func() {
				if err := e.certificates.follow(following, s.reload); err != nil {
					failed <- err
				}
			})
		}
		s.logger.Info("serving "+e.name, "address", e.listener.Addr().String())
		running.Go(func() { failed <- e.serve() })
	}
	select {
	case <-ctx.Done():
		s.drain()
		return nil
	case err := <-failed:
		for _, e := range endpoints {
			e.server.Close()
		}
		return fmt.Errorf("serve: %w", err)
	}
}

// handle sets the handler of each endpoint. An endpoint has the readiness checks of its own handlers. The
// metrics endpoint has all of them, and has the checks of each other endpoint by name, for callers without a certificate.
func (s *listeners) handle(p parts) {
	stopping := check{"shutdown", s.running}
	ready, joinReady := slices.Clone(p.ready), slices.Clone(p.joinReady)
	if s.webhook != nil {
		ready = append(ready, check{"certificates", s.webhook.certificates.state})
	}
	if s.bootstrap != nil {
		joinReady = append(joinReady, check{"bootstrap-certificates", s.bootstrap.certificates.state})
	}
	all := append(slices.Concat(ready, joinReady), stopping)
	ready, joinReady = append(ready, stopping), append(joinReady, stopping)
	if s.webhook != nil {
		mux := http.NewServeMux()
		for path, handler := range p.webhooks {
			handler = s.webhook.certificates.only(handler)
			if p.observe != nil {
				handler = p.observe(path, handler)
			}
			mux.Handle(path, handler)
		}
		s.webhook.server.Handler = s.moving(withHealth(mux, ready))
	}
	if s.bootstrap != nil {
		mux := http.NewServeMux()
		mux.Handle("/", p.machines)
		s.bootstrap.server.Handler = s.moving(withHealth(mux, joinReady))
	}
	if s.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("/metrics", p.metrics)
		mux.Handle("/readyz/webhook", health("readyz", ready...))
		mux.Handle("/readyz/bootstrap", health("readyz", joinReady...))
		s.metrics.server.Handler = s.moving(withHealth(mux, all))
	}
}

// withHealth adds the health endpoints.
func withHealth(mux *http.ServeMux, ready []check) http.Handler {
	mux.Handle("/livez", health("livez", check{"ping", func() (string, error) { return "", nil }}))
	mux.Handle("/readyz", health("readyz", ready...))
	return mux
}

// moving records requests on their connections, and asks clients to use another connection once the server is
// stopping, so that none sends a request on one that is about to be closed. In HTTP/2, which has no such header,
// it makes the server say the same with a frame.
func (s *listeners) moving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connectionOf(r.Context()).begin(r)
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

var errStopping = errors.New("the server is shutting down")

func (s *listeners) running() (string, error) {
	if s.stopping.Load() {
		return "", errStopping
	}
	return "", nil
}

// drain fails readiness, keeps serving for the shutdown delay, and then completes the
// requests in flight.
func (s *listeners) drain() {
	s.stopping.Store(true)
	delay, timeout := s.config.Shutdown.Delay.Duration, s.config.Shutdown.Timeout.Duration
	s.logger.Info("shutting down", "delay", delay.String(), "timeout", timeout.String())
	s.sleep(delay)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var draining sync.WaitGroup
	for _, e := range s.endpoints() {
		draining.Go(func() {
			if err := e.shutdown(ctx); err != nil {
				s.logger.Error(err, "requests in flight are cut off: give them more time with shutdown.timeout",
					"address", e.listener.Addr().String())
				e.server.Close()
			}
		})
	}
	draining.Wait()
	s.logger.Info("shut down")
}
