package server

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// accessReviewTimeout limits one request to the API server. Meanwhile the API server waits
// for this server's answer, 10 seconds by default.
const accessReviewTimeout = 3 * time.Second

// accessReviews sends the extra authorization checks to the API server. Its authorizers, such
// as RBAC, decide.
type accessReviews struct {
	authorizer authorizer.Authorizer
	failed     func() // counts failed requests
}

func newAccessReviews(cluster *rest.Config, config v1alpha1.AccessReviews, failed func()) (*accessReviews, error) {
	cluster = rest.CopyConfig(cluster)
	cluster.Timeout = accessReviewTimeout
	cluster.QPS = -1 // only the API server limits
	client, err := authorizationclient.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cluster.Host, err)
	}
	delegating, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		AllowCacheTTL:             config.AllowedTTL.Duration,
		DenyCacheTTL:              config.DeniedTTL.Duration,
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("ask cluster %s for access reviews: %w", cluster.Host, err)
	}
	return &accessReviews{authorizer: delegating, failed: failed}, nil
}

// Authorize implements noderestriction.Authorizer.
func (r *accessReviews) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	decision, reason, err := r.authorizer.Authorize(ctx, req.Attributes())
	if err != nil {
		r.failed()
		return false, reason, fmt.Errorf("ask the API server whether %s may %s %s: %w", req.User, req.Verb, req.Resource, err)
	}
	return decision == authorizer.DecisionAllow, reason, nil
}
