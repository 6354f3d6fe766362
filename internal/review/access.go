package review

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AccessReview is the request of a valid SubjectAccessReview, with the version of the review.
type AccessReview struct {
	Request access.Request
	// Ignored are the parts of the selectors that were dropped.
	Ignored Ignored

	apiVersion string
}

const (
	accessReviewKind    = "SubjectAccessReview"
	accessReviewVersion = "authorization.k8s.io/v1"
	accessReviewBeta    = "authorization.k8s.io/v1beta1"
	wantAccessReviews   = accessReviewKind + " of " + accessReviewVersion + " or v1beta1"
)

// MaxAccessReview is the maximum size in bytes of a SubjectAccessReview.
// API servers make a review from a URL and headers of at most 1 MiB. A requirement of a label selector
// of two characters becomes 32.
const MaxAccessReview = 20 << 20

// DecodeAccessReview decodes a SubjectAccessReview of authorization.k8s.io/v1 or v1beta1. It refuses documents larger
// than [MaxAccessReview].
//
// The sender of a request chooses its selectors, so that these are never an error, unless they have other types: an API
// server may let other authorizers decide instead. An invalid selector is dropped, and so are
// requirements beyond a limit, which only makes the request broader.
func DecodeAccessReview(document []byte) (*AccessReview, error) {
	header, err := check(document, MaxAccessReview, wantAccessReviews,
		metav1.TypeMeta{Kind: accessReviewKind, APIVersion: accessReviewVersion},
		metav1.TypeMeta{Kind: accessReviewKind, APIVersion: accessReviewBeta})
	if err != nil {
		return nil, err
	}
	var in struct {
		Spec accessSpec `json:"spec"`
	}
	if header.APIVersion == accessReviewBeta {
		var beta struct {
			Spec betaAccessSpec `json:"spec"`
		}
		err = json.Unmarshal(document, &beta, accessOptions)
		in.Spec = beta.Spec.accessSpec
		in.Spec.Groups = beta.Spec.Group
	} else {
		err = json.Unmarshal(document, &in, accessOptions)
	}
	if err != nil {
		return nil, strictjson.Explain(err)
	}
	return in.Spec.review(header.APIVersion)
}

// accessSpec has the fields of v1.
type accessSpec struct {
	authorizationv1.SubjectAccessReviewSpec `json:",inline"`
	// Extra replaces the field of the same name.
	Extra map[string][]string `json:"extra"`
}

// betaAccessSpec differs in one field: groups are called "group".
type betaAccessSpec struct {
	accessSpec
	Groups part     `json:"groups"`
	Group  []string `json:"group"`
}

// maxRequirements is the maximum number of requirements of a selector that are read.
const maxRequirements = 10_000

// accessOptions are made once, because they note how each type is decoded.
var accessOptions = optionsOf(syntax(), accessReadings())

func accessReadings() []reading {
	return []reading{atMost[metav1.FieldSelectorRequirement](maxRequirements), atMost[metav1.LabelSelectorRequirement](maxRequirements)}
}

func (s *accessSpec) review(apiVersion string) (*AccessReview, error) {
	spec := &s.SubjectAccessReviewSpec
	dropped := dropInvalidSelectors(spec.ResourceAttributes)
	if errs := Validate(spec); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	r := &AccessReview{apiVersion: apiVersion}
	r.Request, r.Ignored = Attributes(spec)
	r.Request.Extra, r.Ignored = s.Extra, append(dropped, r.Ignored...)
	return r, nil
}

// Answer asks an authorizer and returns the response document: a SubjectAccessReview with
// only a status, in the version of the request.
func (r *AccessReview) Answer(ctx context.Context, authorize Authorize) []byte {
	return encode(&statusDocument[accessStatus]{accessReviewKind, r.apiVersion, r.status(ctx, authorize)})
}

// answerWith is Answer with the metadata and the spec of the document of the review. It also reports whether the
// request is allowed.
func (r *AccessReview) answerWith(ctx context.Context, authorize Authorize, document []byte) (text []byte, allowed bool, err error) {
	var asked struct {
		Metadata part `json:"metadata"`
		Spec     part `json:"spec"`
	}
	if err := json.Unmarshal(document, &asked, checked()); err != nil {
		return nil, false, strictjson.Explain(err)
	}
	status := r.status(ctx, authorize)
	return encode(&struct {
		Kind       string         `json:"kind"`
		APIVersion string         `json:"apiVersion"`
		Metadata   jsontext.Value `json:"metadata,omitzero"`
		Spec       jsontext.Value `json:"spec"`
		Status     accessStatus   `json:"status"`
	}{accessReviewKind, r.apiVersion, asked.Metadata.of(document), asked.Spec.of(document), status}), status.Allowed, nil
}

func (r *AccessReview) status(ctx context.Context, authorize Authorize) accessStatus {
	answer, ignored := authorize(ctx, &r.Request), r.Ignored
	if answer.EvaluationError != "" {
		ignored = append(Ignored{answer.EvaluationError}, ignored...)
	}
	return accessStatus{
		Allowed:         answer.Decision == verdict.Allow,
		Denied:          answer.Decision == verdict.Deny,
		Reason:          answer.Reason,
		EvaluationError: ignored.String(),
	}
}

// AccessAnswer is the answer to a SubjectAccessReview.
type AccessAnswer struct {
	Decision verdict.Decision
	// Reason is one line; empty for an Allow that needs none.
	Reason string
	// EvaluationError is the error if the request could not be decided, or an error that
	// did not affect the decision; empty without an error.
	EvaluationError string
}

// Authorize authorizes a request. It must be safe for concurrent use, and must not keep the request.
type Authorize func(ctx context.Context, req *access.Request) AccessAnswer

// accessStatus is the same in both versions.
type accessStatus struct {
	Allowed         bool   `json:"allowed"`
	Denied          bool   `json:"denied,omitzero"`
	Reason          string `json:"reason,omitzero"`
	EvaluationError string `json:"evaluationError,omitzero"`
}
