package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	webhookauthorizer "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Parts are the authorizers that a configuration only names. One that the
// configuration does not name may be left out.
type Parts struct {
	Node *nodeauthz.Authorizer
	RBAC *rbac.Policy
}

// Build returns the chain of an API server with this configuration: system:masters
// first, then the authorizers in their order. Webhooks are called as kube-apiserver
// calls them, with the same timeouts, retries and caches; none is called yet. The
// connections that they keep open are closed when ctx ends.
//
// A webhook that connects with InClusterConfig asks the API server that the pod it
// runs in belongs to. If that API server asks this chain too, they ask each other
// endlessly, so kube-apiserver does not allow it.
//
// The error is of type Problems.
func (c *Configuration) Build(ctx context.Context, parts Parts) (Chain, error) {
	return c.build(ctx, parts, *webhookauthorizer.DefaultRetryBackoff())
}

func (c *Configuration) build(ctx context.Context, parts Parts, retry wait.Backoff) (Chain, error) {
	links := Chain{Masters()}
	var problems Problems
	for i := range c.authorizers {
		link, err := c.link(ctx, field.NewPath("authorizers").Index(i), &c.authorizers[i], parts, retry)
		if err != nil {
			problems = append(problems, err)
		}
		links = append(links, link)
	}
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	return links, nil
}

func (c *Configuration) link(ctx context.Context, path *field.Path, a *configured, parts Parts, retry wait.Backoff) (Authorizer, error) {
	switch {
	case a.Type == NameNode && parts.Node != nil:
		return Node(parts.Node), nil
	case a.Type == NameRBAC && parts.RBAC != nil:
		return RBAC(parts.RBAC), nil
	case a.Type == NameAlwaysAllow:
		return AlwaysAllow(), nil
	case a.Type == NameAlwaysDeny:
		return AlwaysDeny(), nil
	case a.Type == apiserver.TypeWebhook:
		return c.webhook(ctx, path.Child("webhook"), a, retry)
	}
	return nil, fmt.Errorf("%s: the %s authorizer is configured but is missing in the parts of the chain", path, a.Type)
}

func (c *Configuration) webhook(ctx context.Context, path *field.Path, a *configured, retry wait.Backoff) (Authorizer, error) {
	connection, err := a.connect(path.Child("connectionInfo"))
	if err != nil {
		return nil, err
	}
	connection.Timeout = a.Webhook.Timeout.Duration
	closeIdle(ctx, connection)
	policy := authorizer.DecisionDeny
	if a.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		policy = authorizer.DecisionNoOpinion
	}
	authorizedTTL, unauthorizedTTL := a.Webhook.AuthorizedTTL.Duration, a.Webhook.UnauthorizedTTL.Duration
	if !a.Webhook.CacheAuthorizedRequests {
		authorizedTTL = 0
	}
	if !a.Webhook.CacheUnauthorizedRequests {
		unauthorizedTTL = 0
	}
	client, err := webhookauthorizer.New(connection, a.Webhook.SubjectAccessReviewVersion, authorizedTTL, unauthorizedTTL,
		retry, policy, a.Webhook.MatchConditions, a.Name, tracingMetrics{}, tracingCompiler{c.compiler})
	if err != nil {
		return nil, fmt.Errorf("%s: building the client: %w", path, err)
	}
	return &webhook{name: a.Name, authorizer: client, onError: decisionOf(policy), connection: a.connectionHint()}, nil
}

// connect returns a copy of the connection.
func (a *configured) connect(path *field.Path) (*rest.Config, error) {
	if a.connection != nil {
		return rest.CopyConfig(a.connection), nil
	}
	connection, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("%s: InClusterConfig works only in a pod: run there, or use KubeConfigFile", path.Child("type"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: reading the service account of the pod: %w", path.Child("type"), err)
	}
	return asWebhook(connection), nil
}

// asWebhook returns the connection with the path to which SubjectAccessReviews are
// posted at an API server.
func asWebhook(server *rest.Config) *rest.Config {
	server.Host = strings.TrimSuffix(server.Host, "/") + "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	server.QPS = -1 // the API server has its own rate limits
	return server
}

// connectionHint explains where address and credentials of a webhook come from.
func (a *configured) connectionHint() string {
	if file := a.Webhook.ConnectionInfo.KubeConfigFile; file != nil {
		return "the webhook's address and credentials come from " + *file
	}
	return "the API server of the pod's cluster is asked, as the pod's service account"
}

// closeIdle closes connections that are not in use when ctx ends.
func closeIdle(ctx context.Context, connection *rest.Config) {
	connection.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		context.AfterFunc(ctx, func() { utilnet.CloseIdleConnectionsFor(transport) })
		return transport
	})
}
