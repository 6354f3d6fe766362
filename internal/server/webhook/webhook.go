package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Options configure handlers. The zero value means the defaults.
type Options struct {
	// MaxBodyBytes is the maximum size of a request body; 0 means [review.MaxDocument],
	// which is also the upper bound.
	MaxBodyBytes int64
	// Queue limits the memory of bodies; nil means a queue of its own. All handlers of a
	// server share one.
	Queue *Queue
	// Rejected, if set, is called with the reason why a request is invalid: one of the
	// Reason constants.
	Rejected func(reason string)
	// Mutated, if set, is called for each pod that Mutate handles, with whether the pod was
	// changed.
	Mutated func(changed bool)
	// Unasked, if set, is called for each TokenReview that Authenticate refuses without
	// verifying its token.
	Unasked func(refusal *iam.Refusal)
}

func (o Options) withDefaults() Options {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, review.MaxDocument)
	if o.Queue == nil {
		o.Queue = NewQueue()
	}
	if o.Rejected == nil {
		o.Rejected = func(string) {}
	}
	if o.Mutated == nil {
		o.Mutated = func(bool) {}
	}
	if o.Unasked == nil {
		o.Unasked = func(*iam.Refusal) {}
	}
	return o
}

// Authorize returns the handler that answers SubjectAccessReviews of v1 and v1beta1, each in
// its own version. A request that could not be decided, and about which no later authorizer must
// decide instead, has no answer, but an HTTP error: kube-apiserver then applies the failure policy
// of the webhook.
func Authorize(authorize decision.Authorize, opts Options) http.Handler {
	opts.MaxBodyBytes = min(opts.withDefaults().MaxBodyBytes, review.MaxAccessReview)
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeAccessReview(body)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) {
			failed := false
			document := asked.Answer(ctx, reviewed(authorize, &failed))
			if failed {
				return nil, notDecided()
			}
			return document, nil
		}, nil
	})
}

// reviewed adapts an evaluator to reviews: an error is not a decision. It sets failed if the answer
// must not be used.
func reviewed(authorize decision.Authorize, failed *bool) review.Authorize {
	return func(ctx context.Context, req *access.Request) review.AccessAnswer {
		opinion, err := authorize(ctx, req)
		if err != nil {
			*failed = opinion.FailClosed
			return review.AccessAnswer{Decision: verdict.NoOpinion, Reason: opinion.Reason, EvaluationError: err.Error()}
		}
		return review.AccessAnswer{
			Decision: opinion.Decision, Reason: opinion.Reason, EvaluationError: opinion.EvaluationError,
		}
	}
}

// notDecided is the rejection of a review that could not be decided. Without a time for a retry,
// kube-apiserver applies the failure policy at once.
func notDecided() *rejection {
	return &rejection{
		status: http.StatusServiceUnavailable, message: "the request could not be decided; the log of node-authorizer says why",
	}
}

// Admit returns the handler that answers AdmissionReviews of v1. Reads says which objects
// are decoded.
func Admit(admit decision.Admit, reads review.Reads, opts Options) http.Handler {
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeAdmission(body, reads)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) { return asked.Respond(admit(ctx, asked.Request())), nil }, nil
	})
}

// Authenticate returns the handler that answers TokenReviews of v1 and v1beta1, each in its
// own version. Tokens are valid for the given audiences; if there are none, the API
// server decides about audiences.
//
// A refusal is an answer: the token has no user, for a reason with a code. kube-apiserver
// treats it as an error of this webhook. So it asks again when the token is used again,
// instead of caching the result for minutes, as it does for a user.
func Authenticate(authenticate review.Authenticate, audiences []string, opts Options) http.Handler {
	opts = opts.withDefaults()
	opts.MaxBodyBytes = min(opts.MaxBodyBytes, review.MaxTokenReview)
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeTokenReview(body)
		if err != nil {
			return nil, err
		}
		common, refusal := asked.For(audiences)
		if refusal != nil {
			opts.Unasked(refusal)
			return constantAnswer(asked.Answer(review.Authentication{Refusal: refusal})), nil
		}
		return func(ctx context.Context) ([]byte, error) {
			user, err := authenticate(ctx, asked.Token)
			var refusal *iam.Refusal
			if err != nil && !errors.As(err, &refusal) {
				return nil, notVerified(err)
			}
			return asked.Answer(review.Authentication{User: user, Audiences: common, Refusal: refusal}), nil
		}, nil
	})
}

// throttledRetryAfter is the number of seconds after which the API server retries a throttled
// review. kube-apiserver gives up after ten seconds.
const throttledRetryAfter = 1

// notVerified is the rejection of a review that could not be answered. The error itself goes
// only to the server's log, because it may contain more than facts about the token.
func notVerified(err error) *rejection {
	var throttled *iam.Throttled
	if errors.As(err, &throttled) {
		return &rejection{
			status: http.StatusTooManyRequests, retryAfter: throttledRetryAfter,
			message: throttled.Service + " throttles requests: the token could not be verified; try again",
		}
	}
	return &rejection{
		status:  http.StatusServiceUnavailable,
		message: "the token could not be verified; the log of node-authorizer says why",
	}
}

// Mutate returns the handler that adds tolerations for extended resources to pods that are
// created or updated, as Kubernetes' admission plugin does. Other writes are allowed
// unchanged.
func Mutate(opts Options) http.Handler {
	opts = opts.withDefaults()
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeTolerations(body)
		if err != nil {
			return nil, err
		}
		patch := asked.Patch()
		if asked.WritesPod() {
			opts.Mutated(len(patch) > 0)
		}
		return constantAnswer(asked.RespondPatch(patch)), nil
	})
}
