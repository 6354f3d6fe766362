package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

const versionInterval = time.Minute

// follow watches the cluster until the context ends.
func (w *webhooks) follow(ctx context.Context) {
	if !w.state.follow(ctx, w.logger) {
		return
	}
	live := w.live()
	defer live.Stop()
	w.logger.Info("following the cluster", "host", w.cluster.Host, "version", live.State().ServerVersion)
	waiter := freshness.New(live.State(), freshness.Options{Synced: live.Synced, Waited: w.metrics.Waited})
	defer waiter.Stop()
	w.metrics.Watch(live)
	w.contained.knows(live)
	w.adopt(ctx, live, waiter, live.State().ServerVersion)
	var synced sync.WaitGroup
	defer synced.Wait()
	synced.Go(func() {
		if live.WaitSynced(ctx) == nil {
			w.logger.Info("the state of the cluster has been read", "objects", live.State().Counts())
		}
	})
	w.followVersion(ctx, func(version string) { w.adopt(ctx, live, waiter, version) })
}

// followVersion calls notify with the API server's version at intervals.
func (w *webhooks) followVersion(ctx context.Context, notify func(version string)) {
	client, err := discovery.NewDiscoveryClientForConfig(w.cluster)
	if err != nil {
		w.logger.Error(err, "cannot read the version of the API server: the rules do not change")
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(w.askVersion)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if version, err := client.ServerVersionWithContext(ctx); err == nil {
				notify(source.BehavesAs(version))
			}
		case <-ctx.Done():
			return
		}
	}
}

// adopt applies the rules of the API server's version, if they differ from the current ones.
func (w *webhooks) adopt(ctx context.Context, live *source.Live, waiter *freshness.Waiter, serverVersion string) {
	features, exact, err := featuresOf(&w.config.Cluster, serverVersion)
	if err == nil && features.Minor() == w.answers.Load().minor {
		return
	}
	var d *decider
	if err == nil {
		d, err = w.decider(ctx, live, features)
	}
	if err != nil {
		w.trouble.Store(&err)
		w.logger.Error(err, "cannot decide about this cluster", "version", serverVersion)
		return
	}
	if !exact {
		w.logger.Info("the API server has a version that is not supported: using the rules of another version",
			"version", serverVersion, "rules", features.Minor().String())
	}
	authorize := d.AuthorizeNode
	if w.chain != nil {
		authorize = d.Authorize
	}
	atOnce := d.authorize(authorize)
	w.answers.Store(w.answersOf(features.Minor(),
		waiter.Authorize(w.config.Authorization.FreshnessWait.Duration, atOnce, d.related), atOnce,
		waiter.Admit(w.config.Admission.FreshnessWait.Duration, d.admit),
		d.Reads,
	))
	w.metrics.Build(observe.Build{Version: w.opts.Version, Commit: w.opts.Commit, KubernetesVersion: features.Minor().String()})
	w.logger.Info("deciding", "rules", features.Minor().String())
}

// decider returns the evaluators for one version.
func (w *webhooks) decider(ctx context.Context, live *source.Live, features kubeversion.Features) (*decider, error) {
	evaluator, err := evaluate.New(ctx, live.State(), evaluate.Options{
		Features: features, Authorizers: w.chain, Access: w.reviews, Ages: live, Containment: w.contained.options(),
	})
	if err != nil {
		return nil, fmt.Errorf("authorization.configFile: %w", err)
	}
	return &decider{Evaluator: evaluator, tooOld: w.metrics.TooOld, observed: w.writeObserved}, nil
}

// writeObserved counts and logs a write that a NodeScope in the mode Observe would refuse. Nothing makes
// such a write wait, so that it is evaluated once.
func (w *webhooks) writeObserved(req *noderestriction.Request, scope *decision.ScopeRefusal) {
	w.metrics.ScopeRefused(scope)
	w.refusals.WriteObserved(req, scope)
}

func (w *webhooks) asksRBAC() bool { return w.chain != nil && w.chain.Asks(chain.NameRBAC) }
