package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/internal/observe"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const versionInterval = time.Minute

// follow keeps up with the cluster until the context ends.
func (s *Server) follow(ctx context.Context) {
	live := s.connect(ctx)
	if live == nil {
		return
	}
	defer live.Stop()
	s.logger.Info("following the cluster", "host", s.cluster.Host, "version", live.State().ServerVersion)
	waiter := freshness.New(live.State(), freshness.Options{Synced: live.Synced, Waited: s.metrics.Waited})
	defer waiter.Stop()
	s.metrics.Watch(live)
	s.live.Store(live)
	s.adopt(ctx, live, waiter, live.State().ServerVersion)
	var synced sync.WaitGroup
	defer synced.Wait()
	synced.Go(func() {
		if live.WaitSynced(ctx) == nil {
			s.logger.Info("the state of the cluster has been read", "objects", live.State().Counts())
		}
	})
	s.followVersion(ctx, func(version string) { s.adopt(ctx, live, waiter, version) })
}

// followVersion tells the API server's version from time to time.
func (s *Server) followVersion(ctx context.Context, tell func(version string)) {
	client, err := discovery.NewDiscoveryClientForConfig(s.cluster)
	if err != nil {
		s.logger.Error(err, "cannot ask for the version of the API server: the rules stay as they are")
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(s.askVersion)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if version, err := client.ServerVersionWithContext(ctx); err == nil {
				tell(source.BehavesAs(version))
			}
		case <-ctx.Done():
			return
		}
	}
}

// adopt answers by the rules of the API server's version, if they are not those
// by which the server answers already.
func (s *Server) adopt(ctx context.Context, live *source.Live, waiter *freshness.Waiter, serverVersion string) {
	features, exact, err := featuresOf(&s.config.Cluster, serverVersion)
	if err == nil && features.Minor() == s.answers.Load().minor {
		return
	}
	var d *decider
	if err == nil {
		d, err = s.decider(ctx, live.State(), features)
	}
	if err != nil {
		s.trouble.Store(&err)
		s.logger.Error(err, "cannot decide about this cluster", "version", serverVersion)
		return
	}
	if !exact {
		s.logger.Info("the API server has a version that is not supported: deciding by the rules of another",
			"version", serverVersion, "rules", features.Minor().String())
	}
	related := func(req *nodeauthz.Request) bool { return d.node.Decide(req).Decision == verdict.Allow }
	s.answers.Store(s.answersOf(features.Minor(),
		waiter.Authorize(s.config.Authorization.FreshnessWait.Duration, d.authorize(), related),
		waiter.Admit(s.config.Admission.FreshnessWait.Duration, d.admit),
		d.restriction.Reads,
	))
	s.metrics.Build(observe.Build{Version: s.opts.Version, Commit: s.opts.Commit, KubernetesVersion: features.Minor().String()})
	s.logger.Info("deciding", "rules", features.Minor().String())
}

// decider makes the evaluators for one version.
func (s *Server) decider(ctx context.Context, state *source.State, features kubeversion.Features) (*decider, error) {
	d := &decider{
		state: state, node: nodeauthz.New(state.Graph, features), asksRBAC: s.asksRBAC(),
		restriction: noderestriction.New(state, s.reviews, features),
	}
	if s.chain == nil {
		return d, nil
	}
	var err error
	if d.chain, err = s.chain.Build(ctx, chain.Parts{Node: d.node, RBAC: state.RBAC}); err != nil {
		return nil, fmt.Errorf("authorization.configFile: %w", err)
	}
	return d, nil
}

func (s *Server) asksRBAC() bool { return s.chain != nil && s.chain.Asks(chain.NameRBAC) }
