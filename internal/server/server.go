package server

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/webhook"
)

// Options are what a server needs besides its configuration.
type Options struct {
	Logger logr.Logger
	// Version and Commit say what runs.
	Version, Commit string

	// aws carries the requests to AWS; nil for what the environment says.
	aws http.RoundTripper
}

// Server is one server. New makes one that listens, Run lets it serve.
type Server struct {
	*listeners
	measures *observe.Metrics
	refusals *observe.Refusals
	// connection is nil if no API server is asked for anything.
	connection *apiserver.Connection
	// webhooks is nil if nothing is decided about nodes, authentication if tokens are
	// not asked about, join if machines do not join here.
	webhooks       *webhooks
	authentication *authentication
	join           *join
}

// New makes a server from a valid configuration. It reads the files that the
// configuration names and begins to listen, but does not wait for the API
// server. An error says which field to correct.
func New(config *v1alpha1.ServerConfiguration, opts Options) (*Server, error) {
	s := &Server{measures: observe.NewMetrics()}
	var cluster *rest.Config
	var err error
	if needsCluster(config) {
		if s.connection, err = connectTo(&config.Cluster, opts, s.measures); err != nil {
			return nil, err
		}
		cluster = s.connection.Config()
	}
	s.refusals = observe.NewRefusals(opts.Logger, observe.RefusalOptions{
		Verbosity: int(config.Log.Refusals.Verbosity),
		PerSecond: float64(config.Log.Refusals.PerSecond),
		Burst:     int(config.Log.Refusals.Burst),
		NotLogged: s.measures.RefusalsNotLogged,
	})
	bodies := webhook.NewQueue()
	if decides(config) {
		if s.webhooks, err = newWebhooks(config, opts, cluster, s.measures, s.refusals, bodies); err != nil {
			return nil, err
		}
	}
	shared := newSharedEC2(&config.IAM.EC2, opts.aws, s.measures.EC2Request)
	if config.Webhook.Answers(v1alpha1.ServeAuthentication) {
		if s.authentication, err = newAuthentication(config, opts, cluster, s.measures, s.refusals, bodies, shared); err != nil {
			return nil, err
		}
	}
	if s.join, err = newJoin(config, opts, cluster, s.measures, s.refusals, shared); err != nil {
		return nil, err
	}
	if ages := s.ages(); len(ages) > 0 {
		s.measures.WatchAges(ages)
	}
	s.measures.Build(observe.Build{Version: opts.Version, Commit: opts.Commit})
	if s.listeners, err = newListeners(config, opts.Logger, s.measures); err != nil {
		return nil, err
	}
	return s, nil
}

// ages are those of the copies that the webhook for tokens and the service for machines
// answer from.
func (s *Server) ages() []staleness.Aged {
	var all []staleness.Aged
	if s.authentication != nil {
		all = append(all, s.authentication.mappings.Ages()...)
	}
	if s.join != nil {
		all = append(all, s.join.ages()...)
	}
	return all
}

// decides reports whether a server decides about nodes, and so follows the state of
// the cluster.
func decides(config *v1alpha1.ServerConfiguration) bool {
	return config.Webhook.Answers(v1alpha1.ServeAuthorization) || config.Webhook.Answers(v1alpha1.ServeAdmission)
}

// needsCluster reports whether a server asks an API server for anything.
func needsCluster(config *v1alpha1.ServerConfiguration) bool {
	return decides(config) || config.Bootstrap.Address != "" || config.Approver.Enabled ||
		config.Webhook.Answers(v1alpha1.ServeAuthentication) && mappingsInCluster(&config.IAM)
}

// Addresses are those that a server listens on, nil for each that there is not.
type Addresses struct{ Webhook, Bootstrap, Metrics net.Addr }

// Addresses are those that the server listens on.
func (s *Server) Addresses() Addresses {
	return Addresses{s.webhook.address(), s.bootstrap.address(), s.metrics.address()}
}

// Run serves until the context ends, and then until requests under way are
// answered. It is called once. An error means that the server stopped on its
// own.
func (s *Server) Run(ctx context.Context) error {
	limitMemory("/", s.logger)
	p := parts{metrics: s.measures.Handler(), webhooks: map[string]http.Handler{}, observe: s.observe}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	defer s.refusals.Flush()
	defer background.Wait()
	defer stop()
	if s.connection != nil {
		background.Go(func() { s.connection.Run(following) })
	}
	if ages := s.ages(); len(ages) > 0 {
		background.Go(func() { logAges(following, s.logger, ages) })
	}
	if s.webhooks != nil {
		s.webhooks.warnOfOpenAccess()
		s.webhooks.addTo(&p)
		background.Go(func() { s.webhooks.follow(following) })
	}
	if s.authentication != nil {
		s.authentication.warnOfInsecureSettings()
		s.authentication.addTo(&p)
		background.Go(func() { s.authentication.follow(following) })
	}
	if s.join != nil {
		s.join.warnOfInsecureSettings()
		s.join.addTo(&p, s.bootstrap)
		background.Go(func() { s.join.follow(following) })
	}
	if s.join != nil && s.join.approver != nil {
		// Others approve from the moment that this server is told to end.
		approving, resign := context.WithCancel(ctx)
		defer resign()
		background.Go(func() { s.join.approve(approving) })
	}
	return s.serve(ctx, p)
}

// observe counts the requests to a webhook.
func (s *Server) observe(path string, next http.Handler) http.Handler {
	return s.measures.HTTP(endpointOf(path), next)
}
