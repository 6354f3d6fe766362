package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/observe"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/internal/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The paths of the webhooks.
const (
	authorizePath = "/authorize"
	admitPath     = "/admit"
	mutatePath    = "/mutate"
)

// Options are what a server needs besides its configuration.
type Options struct {
	Logger logr.Logger
	// Version and Commit say what runs.
	Version, Commit string
}

// Server is one server. New makes one that listens, Run lets it serve.
type Server struct {
	*shell
	opts     Options
	cluster  *rest.Config
	reviews  *accessReviews
	chain    *chain.Configuration // nil in the mode Node
	metrics  *observe.Metrics
	refusals *observe.Refusals
	// askVersion is how often the API server is asked for its version: the rules
	// change when it is upgraded.
	askVersion time.Duration

	// trouble is why nothing can be decided about nodes, if so.
	trouble atomic.Pointer[error]
	live    atomic.Pointer[source.Live]
	// answers are never nil.
	answers atomic.Pointer[answers]
}

// answers are the handlers for what is known of the cluster.
type answers struct {
	authorize, admit http.Handler
	// minor is the version whose rules hold; 0 before the cluster is known.
	minor kubeversion.Minor
}

// New makes a server from a valid configuration. It reads the files that the
// configuration names and begins to listen, but does not wait for the API
// server. An error says which field to correct.
func New(config *v1alpha1.ServerConfiguration, opts Options) (*Server, error) {
	s := &Server{opts: opts, metrics: observe.NewMetrics(), askVersion: versionInterval}
	var err error
	if s.cluster, err = clusterConfig(config.Cluster.Kubeconfig, "node-authorizer/"+opts.Version); err != nil {
		return nil, err
	}
	if s.reviews, err = newAccessReviews(s.cluster, config.Admission.AccessReviews, s.metrics.AccessReviewFailed); err != nil {
		return nil, err
	}
	if config.Authorization.Mode == v1alpha1.ChainMode {
		if s.chain, err = chain.Load(config.Authorization.ConfigFile); err != nil {
			return nil, fmt.Errorf("authorization.configFile: %w", err)
		}
	}
	s.refusals = observe.NewRefusals(opts.Logger, observe.RefusalOptions{
		Verbosity: int(config.Log.Refusals.Verbosity),
		PerSecond: float64(config.Log.Refusals.PerSecond),
		Burst:     int(config.Log.Refusals.Burst),
		NotLogged: s.metrics.RefusalsNotLogged,
	})
	s.metrics.Build(observe.Build{Version: opts.Version, Commit: opts.Commit})
	if s.shell, err = newShell(config, opts.Logger, s.metrics); err != nil {
		return nil, err
	}
	before := review.Evaluate(nodeBeforeCluster)
	if s.chain != nil {
		before = chainBeforeCluster
	}
	s.answers.Store(s.answersOf(0, before, admitBeforeCluster, readsNothing))
	return s, nil
}

// Addresses are those that the server listens on; that of metrics is nil for
// none.
func (s *Server) Addresses() (webhook, metrics net.Addr) { return s.addresses() }

// Run serves until the context ends, and then until requests under way are
// answered. It is called once. An error means that the server stopped on its
// own.
func (s *Server) Run(ctx context.Context) error {
	s.tellCallers()
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { s.follow(following) })
	defer s.refusals.Flush()
	defer background.Wait()
	defer stop()
	return s.serve(ctx, parts{
		webhooks: map[string]http.Handler{
			authorizePath: s.current(func(a *answers) http.Handler { return a.authorize }),
			admitPath:     s.current(func(a *answers) http.Handler { return a.admit }),
			mutatePath:    webhook.Mutate(s.options(mutatePath)),
		},
		observe: func(path string, next http.Handler) http.Handler { return s.metrics.HTTP(endpointOf(path), next) },
		ready: []check{
			{"graph-sync", s.graphSync}, {"rights", s.rights}, {"authorization", s.authorization},
		},
		metrics: s.metrics.Handler(),
	})
}

// tellCallers logs who may call the webhooks, if that may be more than API
// servers.
func (s *Server) tellCallers() {
	switch {
	case s.config.Webhook.ClientAuthentication == v1alpha1.NoClientAuthentication:
		s.logger.Info("callers are not authenticated: everybody who can connect learns which objects are in use on which node; set webhook.clientAuthentication to Required")
	case len(s.config.Webhook.AllowedClientNames) == 0:
		s.logger.Info("every certificate of the authorities in webhook.clientCAFile may call; if they sign others than the API server's, set webhook.allowedClientNames")
	}
}

// endpointOf is a path as metrics name it.
func endpointOf(path string) string { return path[1:] }

// options are those of a webhook.
func (s *Server) options(path string) webhook.Options {
	return webhook.Options{
		MaxBodyBytes: s.config.Webhook.MaxBodyBytes,
		Rejected:     s.metrics.BodyError(endpointOf(path)),
		Mutated:      s.metrics.Mutated,
	}
}

// current serves with the answers of the time of the request.
func (s *Server) current(handler func(*answers) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler(s.answers.Load()).ServeHTTP(w, r)
	})
}

// answersOf wraps evaluators in what counts and logs, and these in HTTP.
func (s *Server) answersOf(minor kubeversion.Minor, authorize review.Evaluate, admit review.Admit, reads review.Reads) *answers {
	return &answers{
		minor:     minor,
		authorize: webhook.Authorize(s.refusals.Authorize(s.metrics.Authorize(authorize)), s.options(authorizePath)),
		admit:     webhook.Admit(s.refusals.Admit(s.metrics.Admit(admit)), reads, s.options(admitPath)),
	}
}
