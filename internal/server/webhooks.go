package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// The paths of the webhooks.
const (
	authorizePath = "/authorize"
	admitPath     = "/admit"
	mutatePath    = "/mutate"
	// An API server that observes asks these, and uses no answer: before its Node authorizer, behind it, and after
	// NodeRestriction.
	observePath       = "/observe/authorize"
	observeBehindPath = "/observe/behind"
	observeAdmitPath  = "/observe/admit"
)

// webhooks answer API servers' questions about nodes from the state of the cluster.
type webhooks struct {
	config    *v1alpha1.ServerConfiguration
	opts      Options
	logger    logr.Logger
	cluster   *rest.Config
	reviews   *accessReviews
	chain     *chain.Configuration // nil in the mode Node
	metrics   *observe.Metrics
	refusals  *observe.Refusals
	agreement *observe.Agreement
	bodies    *webhook.Queue
	// contained is nil if the answers do not depend on NodeScopes and Quarantines.
	contained *contained
	// askVersion is the interval between requests for the version of the API server. The
	// rules change when it is upgraded.
	askVersion time.Duration

	// state is the state of the cluster. trouble is why requests of nodes cannot be decided although there is one; nil if
	// they can.
	state   pending[*source.Live]
	trouble atomic.Pointer[error]
	// answers are never nil.
	answers atomic.Pointer[answers]
}

// answers are the handlers for the current state of the cluster.
type answers struct {
	byPath map[string]http.Handler
	// minor is the version whose rules hold; 0 before the cluster is known.
	minor kubeversion.Minor
}

// newWebhooks returns the webhooks for a valid configuration. They answer at once; follow reads the
// cluster.
func newWebhooks(
	config *v1alpha1.ServerConfiguration, opts Options, cluster *rest.Config,
	metrics *observe.Metrics, refusals *observe.Refusals, bodies *webhook.Queue, contained *contained,
) (*webhooks, error) {
	w := &webhooks{
		config: config, opts: opts, logger: opts.Logger, cluster: cluster, contained: contained,
		metrics: metrics, refusals: refusals, agreement: observe.NewAgreement(metrics, refusals), bodies: bodies,
		askVersion: versionInterval,
	}
	w.state.name, w.state.make = "the API server", w.watch
	var err error
	if w.reviews, err = newAccessReviews(cluster, config.Admission.AccessReviews, metrics.AccessReviewFailed); err != nil {
		return nil, err
	}
	if config.Authorization.Mode == v1alpha1.ChainMode {
		if w.chain, err = chain.Load(config.Authorization.ConfigFile); err != nil {
			return nil, fmt.Errorf("authorization.configFile: %w", err)
		}
	}
	w.answers.Store(w.answersOf(0, w.authorizeBefore, w.authorizeBefore, w.admitBefore, readsNothing))
	return w, nil
}

// addTo adds the webhooks to the parts that the listeners serve.
func (w *webhooks) addTo(p *parts) {
	var paths []string
	if w.config.Webhook.Answers(v1alpha1.ServeAuthorization) {
		paths = append(paths, authorizePath, observePath, observeBehindPath)
	}
	if w.config.Webhook.Answers(v1alpha1.ServeAdmission) {
		paths = append(paths, admitPath, observeAdmitPath)
		p.webhooks[mutatePath] = webhook.Mutate(webhookOptions(w.config, w.metrics, w.bodies, mutatePath))
	}
	for _, path := range paths {
		p.webhooks[path] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.answers.Load().byPath[path].ServeHTTP(rw, r)
		})
	}
	p.ready = append(p.ready,
		check{"graph-sync", w.graphSync}, check{"rights", w.rights},
		check{"state-age", w.stateAge}, check{"authorization", w.authorization})
}

// warnOfOpenAccess logs if others than API servers may call the webhooks.
func (w *webhooks) warnOfOpenAccess() {
	switch {
	case w.config.Webhook.ClientAuthentication == v1alpha1.NoClientAuthentication:
		w.logger.Info("callers are not authenticated: everybody who can connect learns which objects are in use on which node; " +
			"set webhook.clientAuthentication to Required")
	case w.config.Webhook.ClientAuthentication == v1alpha1.AnyClientCertificate:
		w.logger.Info("everybody with a certificate of webhook.clientCAFile can ask about every node; if these authorities sign others " +
			"than API servers' certificates, set webhook.clientAuthentication to Required, and webhook.allowedClientNames")
	}
}

// endpointOf returns the name of a path in metrics.
func endpointOf(path string) string { return path[1:] }

func webhookOptions(
	config *v1alpha1.ServerConfiguration, metrics *observe.Metrics, bodies *webhook.Queue, path string,
) webhook.Options {
	return webhook.Options{
		Queue:        bodies,
		MaxBodyBytes: config.Webhook.MaxBodyBytes,
		Rejected:     metrics.BodyError(endpointOf(path)),
		Mutated:      metrics.Mutated,
	}
}

// answersOf wraps evaluators with metrics, logs and HTTP. Authorize waits for relations that the watch may not have
// delivered yet, atOnce does not.
func (w *webhooks) answersOf(
	minor kubeversion.Minor, authorize, atOnce decision.Authorize, admit decision.Admit, reads review.Reads,
) *answers {
	options := func(path string) webhook.Options { return webhookOptions(w.config, w.metrics, w.bodies, path) }
	return &answers{minor: minor, byPath: map[string]http.Handler{
		authorizePath: webhook.Authorize(w.refusals.Authorize(w.metrics.Authorize(authorize)), options(authorizePath)),
		admitPath:     webhook.Admit(w.refusals.Admit(w.metrics.Admit(admit)), reads, options(admitPath)),

		observePath:       webhook.Authorize(w.agreement.Before(authorize), options(observePath)),
		observeBehindPath: webhook.Authorize(w.agreement.Behind(atOnce), options(observeBehindPath)),
		observeAdmitPath:  webhook.Admit(w.agreement.Admit(admit), reads, options(observeAdmitPath)),
	}}
}

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
	d := &decider{tooOld: w.metrics.TooOld, observed: w.writeObserved}
	if err == nil {
		d.Evaluator, err = evaluate.New(ctx, live.State(), evaluate.Options{
			Features: features, Authorizers: w.chain, Access: w.reviews, Ages: live, Containment: w.contained.options(),
		})
		if err != nil {
			err = fmt.Errorf("authorization.configFile: %w", err)
		}
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

// writeObserved counts and logs a write that a NodeScope in the mode Observe would refuse. Nothing makes
// such a write wait, so that it is evaluated once.
func (w *webhooks) writeObserved(req *noderestriction.Request, scope *decision.ScopeRefusal) {
	w.metrics.ScopeRefused(scope)
	w.refusals.WriteObserved(req, scope)
}

func (w *webhooks) asksRBAC() bool { return w.chain != nil && w.chain.Asks(chain.NameRBAC) }
