package review

import (
	"context"

	"github.com/go-json-experiment/json"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// AccessReview is a SubjectAccessReview in the version in which it was asked.
type AccessReview struct {
	// Spec is valid.
	Spec authorizationv1.SubjectAccessReviewSpec

	apiVersion string
}

const (
	accessReviewBeta  = "authorization.k8s.io/v1beta1"
	wantAccessReviews = wantAccessReview + " or v1beta1"
)

// DecodeAccessReview reads one SubjectAccessReview of authorization.k8s.io, v1
// or v1beta1, as [Decode] does. What is larger than [MaxDocument] or nested more
// than [MaxDepth] deep is refused.
func DecodeAccessReview(document []byte) (*AccessReview, error) {
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	var review accessReview
	decodeErr := json.Unmarshal(document, &review, asKubernetes())
	if review.Kind != accessReviewKind || review.APIVersion != accessReviewVersion {
		switch header, ok := readHeader(document); {
		case ok && header.Kind == accessReviewKind && header.APIVersion == accessReviewBeta:
			return decodeBeta(document)
		case ok:
			return nil, &kindError{header, wantAccessReviews}
		}
	}
	if decodeErr != nil {
		return nil, badjson.Explain(decodeErr)
	}
	return checkedAccessReview(accessReviewVersion, &review.Spec)
}

// accessReview leaves out what does not matter to the answer.
type accessReview struct {
	metav1.TypeMeta `json:",inline"`
	Spec            authorizationv1.SubjectAccessReviewSpec `json:"spec"`
}

// betaAccessReview differs in one thing only: groups are called "group".
type betaAccessReview struct {
	Spec struct {
		ResourceAttributes    *authorizationv1.ResourceAttributes    `json:"resourceAttributes"`
		NonResourceAttributes *authorizationv1.NonResourceAttributes `json:"nonResourceAttributes"`
		User                  string                                 `json:"user"`
		Groups                []string                               `json:"group"`
		Extra                 map[string]authorizationv1.ExtraValue  `json:"extra"`
		UID                   string                                 `json:"uid"`
	} `json:"spec"`
}

func decodeBeta(document []byte) (*AccessReview, error) {
	var review betaAccessReview
	if err := json.Unmarshal(document, &review, asKubernetes()); err != nil {
		return nil, badjson.Explain(err)
	}
	spec := authorizationv1.SubjectAccessReviewSpec(review.Spec)
	return checkedAccessReview(accessReviewBeta, &spec)
}

func checkedAccessReview(apiVersion string, spec *authorizationv1.SubjectAccessReviewSpec) (*AccessReview, error) {
	if errs := Validate(spec); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &AccessReview{Spec: *spec, apiVersion: apiVersion}, nil
}

// Answer puts the review to an authorizer and returns the document that answers
// it, a SubjectAccessReview with nothing but a status, in the version asked.
func (r *AccessReview) Answer(ctx context.Context, evaluate Evaluate) []byte {
	return encode(&accessAnswer{accessReviewKind, r.apiVersion, accessStatus(Status(ctx, evaluate, &r.Spec))})
}

// The answer is the same in both versions.
type (
	accessAnswer struct {
		Kind       string       `json:"kind"`
		APIVersion string       `json:"apiVersion"`
		Status     accessStatus `json:"status"`
	}
	accessStatus struct {
		Allowed         bool   `json:"allowed"`
		Denied          bool   `json:"denied,omitzero"`
		Reason          string `json:"reason,omitzero"`
		EvaluationError string `json:"evaluationError,omitzero"`
	}
)
