package review

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	apiVersion = "authorization.k8s.io/v1"
	kind       = "SubjectAccessReview"
)

// Opinion is an authorizer's answer to one request.
type Opinion struct {
	Decision verdict.Decision
	// Reason is one line for people; empty for an Allow that needs none.
	Reason string
}

// Evaluate puts one request to an authorizer. An error means that the question
// could not be decided; it becomes the status's evaluationError, and the
// request is not allowed. It must be safe for concurrent use and must not keep
// the request.
type Evaluate func(ctx context.Context, req *nodeauthz.Request) (Opinion, error)

// Decode reads one SubjectAccessReview of authorization.k8s.io/v1 and checks it.
// Field names are case-sensitive and unknown fields are ignored, as in
// kube-apiserver, which also takes the last of repeated names; metadata may be set, so that callers can tell their documents
// apart, and has no influence.
func Decode(document []byte, into *authorizationv1.SubjectAccessReview) error {
	*into = authorizationv1.SubjectAccessReview{}
	lenient := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	decodeErr := json.Unmarshal(document, into, lenient)
	if into.Kind != kind || into.APIVersion != apiVersion {
		// A document of another kind may fail to decode because of its kind.
		var header metav1.TypeMeta
		if json.Unmarshal(document, &header, lenient) == nil {
			return fmt.Errorf("kind %q of apiVersion %q: want %s of %s", header.Kind, header.APIVersion, kind, apiVersion)
		}
	}
	if decodeErr != nil {
		return badjson.Explain(decodeErr)
	}
	if errs := Validate(&into.Spec); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return nil
}

// Status answers a valid review.
func Status(ctx context.Context, evaluate Evaluate, spec *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	req, ignored := Attributes(spec)
	opinion, err := evaluate(ctx, &req)
	if err != nil {
		opinion.Decision = verdict.NoOpinion
		ignored = append(Ignored{err.Error()}, ignored...)
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed:         opinion.Decision == verdict.Allow,
		Denied:          opinion.Decision == verdict.Deny,
		Reason:          opinion.Reason,
		EvaluationError: ignored.String(),
	}
}

// DocumentError says which document of a stream could not be read.
type DocumentError struct {
	// Number counts documents from 1.
	Number int
	// Line is where the document begins, from 1.
	Line int
	Err  error
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %d, line %d: %v", e.Number, e.Line, e.Err)
}

func (e *DocumentError) Unwrap() error { return e.Err }
