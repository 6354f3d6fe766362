package review

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AccessAnswer is the answer to a SubjectAccessReview.
type AccessAnswer struct {
	Decision verdict.Decision
	// Reason is one line; empty for an Allow that needs none.
	Reason string
	// EvaluationError is the error if the request could not be decided, or an error that
	// did not affect the decision; empty without an error.
	EvaluationError string
}

// Authorize authorizes a request. It must be safe for concurrent use, and must neither keep the
// request nor change it: requests of a user may share its extra values.
type Authorize func(ctx context.Context, req *access.Request) AccessAnswer

// kindError means that a document is of another kind than expected.
type kindError struct {
	header metav1.TypeMeta
	want   string
}

func (e *kindError) Error() string {
	return fmt.Sprintf("kind %q of apiVersion %q: want %s", e.header.Kind, e.header.APIVersion, e.want)
}

// asKubernetes decodes JSON as kube-apiserver does: names are case-sensitive, unknown fields
// are ignored, the last of repeated names is used, and invalid UTF-8 is replaced.
func asKubernetes() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// readHeader returns false if the document has no readable kind.
func readHeader(document []byte) (header metav1.TypeMeta, ok bool) {
	err := json.Unmarshal(document, &header, asKubernetes())
	return header, err == nil
}

const (
	accessReviewKind    = "SubjectAccessReview"
	accessReviewVersion = "authorization.k8s.io/v1"
	wantAccessReview    = accessReviewKind + " of " + accessReviewVersion
)

// Decode decodes and validates a SubjectAccessReview of authorization.k8s.io/v1. As in
// kube-apiserver, field names are case-sensitive, unknown fields are ignored, and the last of
// repeated names is used. Metadata may be set to identify documents; it does not affect the
// answer.
func Decode(document []byte, into *authorizationv1.SubjectAccessReview) error {
	*into = authorizationv1.SubjectAccessReview{}
	decodeErr := json.Unmarshal(document, into, asKubernetes())
	if into.Kind != accessReviewKind || into.APIVersion != accessReviewVersion {
		// A document of another kind may fail to decode because of its kind.
		if header, ok := readHeader(document); ok {
			return &kindError{header, wantAccessReview}
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

// Status returns the answer to a valid review.
func Status(
	ctx context.Context, authorize Authorize, spec *authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	req, ignored := Attributes(spec)
	return status(ctx, authorize, &req, ignored)
}

func status(
	ctx context.Context, authorize Authorize, req *access.Request, ignored Ignored,
) authorizationv1.SubjectAccessReviewStatus {
	answer := authorize(ctx, req)
	if answer.EvaluationError != "" {
		ignored = append(Ignored{answer.EvaluationError}, ignored...)
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed:         answer.Decision == verdict.Allow,
		Denied:          answer.Decision == verdict.Deny,
		Reason:          answer.Reason,
		EvaluationError: ignored.String(),
	}
}

// DocumentError is the error of a document of a stream that could not be read.
type DocumentError struct {
	// Number is the number of the document, from 1.
	Number int
	// Line is the line on which the document begins, from 1.
	Line int
	Err  error
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %d, line %d: %v", e.Number, e.Line, e.Err)
}

func (e *DocumentError) Unwrap() error { return e.Err }
