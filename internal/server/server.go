package server

import (
	"context"
	"net"
	"sync"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/observe"
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
	measures *observe.Metrics
	refusals *observe.Refusals
	// webhooks is nil if there are none, joining if machines do not join here.
	webhooks *webhooks
	joining  *joining
}

// New makes a server from a valid configuration. It reads the files that the
// configuration names and begins to listen, but does not wait for the API
// server. An error says which field to correct.
func New(config *v1alpha1.ServerConfiguration, opts Options) (*Server, error) {
	s := &Server{measures: observe.NewMetrics()}
	cluster, err := clusterConfig(config.Cluster.Kubeconfig, "node-authorizer/"+opts.Version)
	if err != nil {
		return nil, err
	}
	s.refusals = observe.NewRefusals(opts.Logger, observe.RefusalOptions{
		Verbosity: int(config.Log.Refusals.Verbosity),
		PerSecond: float64(config.Log.Refusals.PerSecond),
		Burst:     int(config.Log.Refusals.Burst),
		NotLogged: s.measures.RefusalsNotLogged,
	})
	if config.Webhook.Address != "" {
		if s.webhooks, err = newWebhooks(config, opts, cluster, s.measures, s.refusals); err != nil {
			return nil, err
		}
	}
	if s.joining, err = newJoining(config, opts, cluster, s.measures, s.refusals); err != nil {
		return nil, err
	}
	s.measures.Build(observe.Build{Version: opts.Version, Commit: opts.Commit})
	if s.shell, err = newShell(config, opts.Logger, s.measures); err != nil {
		return nil, err
	}
	return s, nil
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
	p := parts{metrics: s.measures.Handler()}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	defer s.refusals.Flush()
	defer background.Wait()
	defer stop()
	if s.webhooks != nil {
		s.webhooks.tellCallers()
		s.webhooks.serveAs(&p)
		background.Go(func() { s.webhooks.follow(following) })
	}
	if s.joining != nil {
		s.joining.tellDangers()
		s.joining.serveAs(&p, s.bootstrap)
		background.Go(func() { s.joining.follow(following) })
	}
	if s.joining != nil && s.joining.approver != nil {
		// Others approve from the moment that this server is told to end.
		approving, resign := context.WithCancel(ctx)
		defer resign()
		background.Go(func() { s.joining.approve(approving) })
	}
	return s.serve(ctx, p)
}
