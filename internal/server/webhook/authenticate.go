package webhook

import (
	"context"
	"errors"
	"net/http"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
)

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
