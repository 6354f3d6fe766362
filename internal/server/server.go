package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Options are the parameters of a server in addition to its configuration.
type Options struct {
	Logger logr.Logger
	// Version and Commit identify the build.
	Version, Commit string

	// aws is the transport for requests to AWS; nil means the default.
	aws http.RoundTripper
	// users returns the names of the server's own user; nil means the names in its credentials.
	users func() []string
	// now is the clock of NodeScopes and Quarantines; nil means time.Now.
	now func() time.Time
}

// Server is a server. New returns one that listens; Run serves.
type Server struct {
	*listeners
	measures *observe.Metrics
	refusals *observe.Refusals
	// connection is nil if no part sends requests to an API server.
	connection *apiserver.Connection
	// contained is nil if the configuration enables neither NodeScopes nor Quarantines.
	contained *contained
	// webhooks, authentication and join are nil if the configuration does not enable
	// them.
	webhooks       *webhooks
	authentication *authentication
	join           *join
}

// New returns a server for a valid configuration. It reads the files that the configuration names and
// starts to listen, but does not wait for the API server. Errors name the field to correct.
func New(config *v1alpha1.ServerConfiguration, opts Options) (*Server, error) {
	s := &Server{measures: observe.NewMetrics()}
	var cluster *rest.Config
	var err error
	if needsCluster(config) {
		if s.connection, err = connectTo(clusterKubeconfig, config.Cluster.Kubeconfig, opts, s.measures); err != nil {
			return nil, err
		}
		cluster = s.connection.Config()
	}
	if s.connection != nil {
		if opts.users == nil {
			opts.users = s.connection.Users
		}
		if s.contained, err = newContained(config, opts, cluster, s.measures); err != nil {
			return nil, err
		}
	}
	s.refusals = observe.NewRefusals(opts.Logger, observe.RefusalOptions{
		Verbosity: int(config.Log.Refusals.Verbosity),
		PerSecond: float64(config.Log.Refusals.PerSecond),
		Burst:     int(config.Log.Refusals.Burst),
		NotLogged: s.measures.RefusalsNotLogged,
	})
	bodies := webhook.NewQueue()
	if decides(config) {
		if s.webhooks, err = newWebhooks(config, opts, cluster, s.measures, s.refusals, bodies, s.contained); err != nil {
			return nil, err
		}
	}
	shared := newSharedEC2(&config.IAM.EC2, opts.aws, s.measures.EC2Request)
	if config.Webhook.Answers(v1alpha1.ServeAuthentication) {
		s.authentication, err = newAuthentication(config, opts, cluster, s.measures, s.refusals, bodies, shared, s.contained)
		if err != nil {
			return nil, err
		}
	}
	if s.join, err = newJoin(config, opts, cluster, s.measures, s.refusals, shared, s.contained); err != nil {
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

// ages returns the ages of NodeScopes and Quarantines, and of the copies that the webhook for tokens and
// the service for machines use.
func (s *Server) ages() []staleness.Aged {
	all := s.contained.ages()
	if s.authentication != nil {
		all = append(all, s.authentication.mappings.Ages()...)
	}
	if s.join != nil {
		all = append(all, s.join.ages()...)
	}
	return all
}

// decides reports whether a server decides about nodes, and therefore watches the state of the
// cluster.
func decides(config *v1alpha1.ServerConfiguration) bool {
	return config.Webhook.Answers(v1alpha1.ServeAuthorization) || config.Webhook.Answers(v1alpha1.ServeAdmission)
}

// needsCluster reports whether a server sends requests to an API server.
func needsCluster(config *v1alpha1.ServerConfiguration) bool {
	return decides(config) || config.Bootstrap.Address != "" || config.Approver.Enabled || config.Containment.Enabled() ||
		config.Webhook.Answers(v1alpha1.ServeAuthentication) && mappingsInCluster(&config.IAM)
}

// Run serves until the context ends, and then until the requests in flight are answered. It must be
// called only once. An error means that the server stopped by itself.
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
	if s.contained != nil {
		background.Go(func() { s.contained.follow(following) })
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
	s.contained.addTo(&p, s.join != nil)
	if s.join != nil && s.join.approver != nil {
		// Release the lease at the beginning of the shutdown.
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
