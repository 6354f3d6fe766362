package webhook

import (
	"context"
	"errors"
	"net/http"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
)

// Authenticate returns the handler that answers TokenReviews, of v1 and v1beta1,
// each in its own version. The audiences are those that tokens authenticate for; if
// there are none, that is for the API server to say.
//
// A refusal is an answer: the token has no user, because of a code. kube-apiserver
// takes it for an error of this webhook's, and therefore asks again when the token
// comes again, and does not remember it for minutes, as it does with a user.
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
			return given(asked.Answer(review.Authentication{Refusal: refusal})), nil
		}
		return func(ctx context.Context) ([]byte, error) {
			user, err := authenticate(ctx, asked.Token)
			var refusal *iam.Refusal
			if err != nil && !errors.As(err, &refusal) {
				return nil, notFoundOut(err)
			}
			return asked.Answer(review.Authentication{User: user, Audiences: common, Refusal: refusal}), nil
		}, nil
	})
}

// throttledFor is after how many seconds a question that was throttled is asked
// again. kube-apiserver gives up after ten.
const throttledFor = 1

// notFoundOut is the rejection of a review that could not be answered. What the
// error says is for this server's log: it may be about more than the token.
func notFoundOut(err error) *rejection {
	var throttled *iam.Throttled
	if errors.As(err, &throttled) {
		return &rejection{
			status: http.StatusTooManyRequests, retryAfter: throttledFor,
			message: throttled.Service + " throttles: whose the token is could not be found out; try again",
		}
	}
	return &rejection{
		status:  http.StatusServiceUnavailable,
		message: "whose the token is could not be found out; the log of node-authorizer says why",
	}
}
