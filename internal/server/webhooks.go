package server

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
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
	authorize, admit                     http.Handler
	observe, observeBehind, observeAdmit http.Handler
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
	if w.config.Webhook.Answers(v1alpha1.ServeAuthorization) {
		p.webhooks[authorizePath] = w.current(func(a *answers) http.Handler { return a.authorize })
		p.webhooks[observePath] = w.current(func(a *answers) http.Handler { return a.observe })
		p.webhooks[observeBehindPath] = w.current(func(a *answers) http.Handler { return a.observeBehind })
	}
	if w.config.Webhook.Answers(v1alpha1.ServeAdmission) {
		p.webhooks[admitPath] = w.current(func(a *answers) http.Handler { return a.admit })
		p.webhooks[observeAdmitPath] = w.current(func(a *answers) http.Handler { return a.observeAdmit })
		p.webhooks[mutatePath] = webhook.Mutate(w.options(mutatePath))
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

// options returns the options of a webhook.
func (w *webhooks) options(path string) webhook.Options {
	return webhookOptions(w.config, w.metrics, w.bodies, path)
}

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

// current serves with the current answers.
func (w *webhooks) current(handler func(*answers) http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handler(w.answers.Load()).ServeHTTP(rw, r)
	})
}

// answersOf wraps evaluators with metrics, logs and HTTP. Authorize waits for relations that the watch may not have
// delivered yet, atOnce does not.
func (w *webhooks) answersOf(
	minor kubeversion.Minor, authorize, atOnce decision.Authorize, admit decision.Admit, reads review.Reads,
) *answers {
	return &answers{
		minor:     minor,
		authorize: webhook.Authorize(w.refusals.Authorize(w.metrics.Authorize(authorize)), w.options(authorizePath)),
		admit:     webhook.Admit(w.refusals.Admit(w.metrics.Admit(admit)), reads, w.options(admitPath)),

		observe:       webhook.Authorize(w.agreement.Before(authorize), w.options(observePath)),
		observeBehind: webhook.Authorize(w.agreement.Behind(atOnce), w.options(observeBehindPath)),
		observeAdmit:  webhook.Admit(w.agreement.Admit(admit), reads, w.options(observeAdmitPath)),
	}
}
