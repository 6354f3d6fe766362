package webhook

import (
	"cmp"
	"context"
	"net/http"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Options say what handlers accept. The zero value has the defaults.
type Options struct {
	// MaxBodyBytes is the size beyond which a request is refused; 0: that of
	// [review.MaxDocument], which holds in any case.
	MaxBodyBytes int64
	// Queue limits how much of bodies is in memory; nil: one of its own. Handlers of
	// one server share one.
	Queue *Queue
	// Rejected, if set, is told why a request was not a question: one of the
	// Reason constants.
	Rejected func(reason string)
	// Mutated, if set, is told of each pod that Mutate was asked about, and
	// whether it was changed.
	Mutated func(changed bool)
	// Unasked, if set, is told of each TokenReview that Authenticate refuses without a
	// look at its token.
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

// Authorize returns the handler that answers SubjectAccessReviews, of v1 and
// v1beta1, each in its own version.
func Authorize(authorize decision.Authorize, opts Options) http.Handler {
	opts.MaxBodyBytes = min(opts.withDefaults().MaxBodyBytes, review.MaxAccessReview)
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeAccessReview(body)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) { return asked.Answer(ctx, reviewed(authorize)), nil }, nil
	})
}

// reviewed is an evaluator as reviews ask it: an error is no decision.
func reviewed(authorize decision.Authorize) review.Authorize {
	return func(ctx context.Context, req *access.Request) review.AccessAnswer {
		opinion, err := authorize(ctx, req)
		if err != nil {
			return review.AccessAnswer{Decision: verdict.NoOpinion, Reason: opinion.Reason, EvaluationError: err.Error()}
		}
		return review.AccessAnswer{Decision: opinion.Decision, Reason: opinion.Reason, EvaluationError: opinion.EvaluationError}
	}
}

// Admit returns the handler that answers AdmissionReviews, of v1. Reads says
// which objects have to be decoded.
func Admit(admit decision.Admit, reads review.Reads, opts Options) http.Handler {
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeAdmission(body, reads)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) { return asked.Respond(admit(ctx, asked.Request())), nil }, nil
	})
}
